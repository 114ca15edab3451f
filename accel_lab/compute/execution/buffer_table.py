"""The buffers of one generation, inside its context process.

The table alone decides whether an id means memory. Ids are never used twice by a device, so
an id of another generation is simply not here.
"""

from collections.abc import Callable, Collection, Container, Iterable
from typing import Any, NamedTuple

from accel_lab.compute.execution.held_objects import Kept, closing_of
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.display.buffer_number import short
from accel_lab.errors import DependencyFailed, StaleRef

IDS = 64
"""How many buffers of an owner are told."""


class MemoryOwner(NamedTuple):
    """What one message made that takes memory now.

    Attributes:
        label: the message, as "Gemm #12".
        ids: of the buffers that it made, the first.
    """

    label: str
    nbytes: int
    ids: tuple[int, ...]


NOTHING: Callable[[], Any] = lambda: None  # noqa: E731 - what most buffers have lent


class Buffer(AccelRef, Handle[Any]):
    """An operand inside the context: the array or thing, and the storage that tracks its hazards.

    It exists from the first mention of its id, which may be before the message that makes it
    has run; until then it has no array.
    """

    __slots__ = ("array", "failed_root", "lent", "storage")

    # Operators are the notebook's; here two buffers are equal when they are the same one.
    __eq__ = object.__eq__  # type: ignore[assignment]
    __ne__ = object.__ne__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __init__(self, id_: int) -> None:
        self.id = id_
        self.array: Any = None
        self.lent: Callable[[], Any] = NOTHING
        """Returns the array that only a running cell's names hold meanwhile, if they do."""
        self.storage: Storage | None = None
        self.failed_root = 0
        self.known = False

    def fill(self, array: Any, shape: tuple[int, ...], dtype: str, storage: Storage) -> None:
        """Give the buffer its memory."""
        storage.users += 1
        self.array = array
        self.storage = storage
        self.learn(shape, dtype)

    def __repr__(self) -> str:
        return (
            f"<Buffer {short(self.id)}: {self.dtype}{list(self.shape)}>"
            if self.known
            else f"<Buffer {short(self.id)}>"
        )


class BufferTable:
    """Every buffer that a token may name, by id; `known` returns one that has been mentioned."""

    def __init__(self) -> None:
        self._buffers: dict[int, Buffer] = {}
        self.known = self._buffers.get
        self.used_bytes = 0
        self.changes = 0
        """How often something may have become wrong that was prepared with what there is."""
        self.withheld: dict[Storage | int, tuple[Refusal, ...]] = {}
        """What is refused, by its memory; by its id where the contents are away."""
        self.lifted: list[Refusal] = []
        """What was refused of memory that is free by now, for whoever tells of that."""
        self.away: Collection[int] = ()
        """The ids of the buffers whose contents are kept elsewhere."""
        self.begun: dict[int, Any] = {}
        """Arrays that are being filled, of buffers whose messages are on their way, by id.

        None for one whose message has to begin by itself.
        """
        self.values: set[int] = set()
        """The ids of functions' answers that are no arrays."""
        self.forget: Callable[[int], None] = lambda _: None
        """Drop what is kept elsewhere of a buffer, if anything is."""
        self.closed: dict[int, str] = {}
        """Why things are no more whose library was replaced, by id."""
        self.changed: set[Kept] = set()
        """Things that were written, and may take more by now."""
        self.moved: Callable[[], None] = lambda: None
        """Called when a buffer that had memory may get other memory."""

    def __len__(self) -> int:
        return len(self._buffers)

    def buffers(self) -> list[Buffer]:
        """Return all of them as they are now; any thread."""
        return list(self._buffers.values())

    def mention(self, id_: int) -> Buffer:
        """Return the buffer of this id, made or still to be made; used while decoding."""
        buffer = self._buffers.get(id_)
        if buffer is None:
            buffer = self._buffers[id_] = Buffer(id_)
        return buffer

    def require(self, buffer: AccelRef) -> None:
        """Refuse an operand that has no memory.

        Raises:
            DependencyFailed: the message that should have made it failed.
            StaleRef: it was freed, is of another generation, or is no array.
        """
        assert isinstance(buffer, Buffer)
        if buffer.storage is not None:
            return
        if buffer.failed_root:
            raise _never_made(buffer)
        if buffer.id in self.closed:
            raise StaleRef(self.closed[buffer.id], buffer=buffer.id)
        self._buffers.pop(buffer.id, None)
        if buffer.id in self.values:
            number = short(buffer.id)
            text = f"the result of buffer {number} is not an array, so it cannot be an operand"
            raise StaleRef(text)
        text = f"buffer {short(buffer.id)} is not in this generation's table: it was freed or lost"
        raise StaleRef(text, buffer=buffer.id)

    def withhold(self, buffer: AccelRef, refusal: Refusal, had: Storage | None = None) -> bool:
        """Refuse a buffer, and all that shares its memory, until that is lifted.

        Returns whether that is news: the buffer is not refused for the same first failure.

        Parameters:
            had: the memory that it had, which views may have still where it is freed by now.
        """
        assert isinstance(buffer, Buffer)
        memory = buffer.storage or (had if had is not None and had.users else buffer.id)
        refusals = self.withheld.get(memory, ())
        if any(one[:2] == refusal[:2] for one in refusals):
            return False
        if memory == buffer.id and buffer.id not in self.away:
            return False
        self.withheld[memory] = (*refusals, refusal)
        self.changes += 1
        return True

    def release(self, failed: Container[int]) -> None:
        """Refuse nothing any more for these messages: whoever sends what follows knows."""
        for memory, refusals in list(self.withheld.items()):
            left = tuple(one for one in refusals if one.failed not in failed)
            if left:
                self.withheld[memory] = left
            else:
                del self.withheld[memory]

    def dismiss(self, buffer: AccelRef) -> None:
        """Forget an id that was mentioned and stands for nothing."""
        assert isinstance(buffer, Buffer)
        is_here = buffer.storage is not None or buffer.id in self.away or buffer.id in self.closed
        if not is_here and not buffer.failed_root:
            self._buffers.pop(buffer.id, None)

    def require_written(self, operands: Iterable[Any]) -> None:
        """Refuse operands that are withheld.

        Raises:
            DependencyFailed: one is.
        """
        for buffer in operands:
            refusals = self.refusals(buffer)
            if refusals:
                raise _not_written(buffer, refusals)

    def failure_of(self, operands: Iterable[Any]) -> DependencyFailed | None:
        """Return why operands are not what they should be, if any of them is not.

        It fails for one that was never made before it does for one that was not written.
        """
        operands = tuple(operands)
        for buffer in operands:
            if buffer.storage is None and buffer.failed_root:
                return _never_made(buffer)
        for buffer in operands:
            if refusals := self.refusals(buffer):
                return _not_written(buffer, refusals)
        return None

    def refusals(self, buffer: Buffer) -> tuple[Refusal, ...]:
        """Return why a buffer is refused; nothing if it is not."""
        if not self.withheld:
            return ()
        return self.withheld.get(buffer.storage or 0) or self.withheld.get(buffer.id, ())

    def root_of(self, operands: Iterable[Any]) -> int:
        """Return what failed first, as in a `Refusal`, of what fails for want of operands; or 0.

        It fails for one that was never made before it does for one that was not written.
        """
        operands = tuple(operands)
        roots = [buffer.failed_root for buffer in operands]
        roots += [refusal.root for buffer in operands for refusal in self.refusals(buffer)]
        return next(filter(None, roots), 0)

    def fill(
        self, id_: int, array: Any, shape: tuple[int, ...], dtype: str, storage: Storage
    ) -> Buffer:
        """Enter a buffer with its memory."""
        buffer = self.mention(id_)
        if buffer.storage is not None:  # it is made a second time
            self.leave(buffer)
        is_new = storage.users == 0
        buffer.fill(array, shape, dtype, storage)
        if is_new:  # in this order: what is counted is listed, by whatever thread looks now
            self.used_bytes += storage.nbytes
        return buffer

    def fail(self, id_: int, root: int) -> None:
        """Note that the message that should have made `id_` failed because of `root`."""
        buffer = self.mention(id_)
        if buffer.storage is None and id_ not in self.away:
            buffer.failed_root = root

    def spoil(self, buffer: AccelRef) -> None:
        """Note that what should have been written to a new buffer never was; free its memory."""
        assert isinstance(buffer, Buffer)
        self.forget(buffer.id)
        self._release(buffer)
        buffer.failed_root = buffer.failed_root or buffer.id

    def free(self, id_: int) -> None:
        """Forget an id; the storage goes with its last buffer, after every use of it."""
        buffer = self._buffers.pop(id_, None)
        if self.begun:
            self.begun.pop(id_, None)
        if self.values:
            self.values.discard(id_)
        if self.closed:
            self.closed.pop(id_, None)
        if buffer is not None:
            if self.away:
                self.forget(id_)
            if self.withheld:
                self.lifted += self.withheld.pop(id_, ())
                if buffer.storage is not None and buffer.storage.users == 1:
                    self.lifted += self.withheld.pop(buffer.storage, ())
            self._release(buffer)

    def leave(self, buffer: Buffer) -> None:
        """Free the memory of a buffer whose contents are kept elsewhere, or come again."""
        self._release(buffer)
        self.moved()

    def _release(self, buffer: Buffer) -> None:
        storage = buffer.storage
        if storage is None:
            return
        buffer.storage = None
        self.changes += 1
        storage.users -= 1
        if storage.users == 0:
            self.used_bytes -= storage.nbytes
            if self.withheld:
                self.withheld.pop(storage, None)
            storage.release()
        buffer.array = None

    # What is no array.

    def things(self, library: str = "") -> list[Buffer]:
        """Return the things that are kept, of one library or of all."""
        return [
            buffer
            for buffer in self.buffers()
            if type(buffer.storage) is Kept and library in ("", buffer.storage.library)
        ]

    def close_things(self, library: str = "") -> None:
        """Let go of the things of one library, whose actor is replaced, or of all."""
        for buffer in self.things(library):
            if closing_of(buffer.array) is None:
                continue
            self.closed[buffer.id] = (
                f"{buffer.dtype} #{short(buffer.id)} was closed when {library} was replaced, which "
                "had failed; make another, or have its device rebuild it with replace()"
            )
            self.leave(buffer)

    def measure(self) -> None:
        """Find out how much what was written takes by now."""
        while self.changed:
            storage = self.changed.pop()
            if storage.users:
                nbytes = storage.measured()
                self.used_bytes += nbytes - storage.nbytes
                storage.nbytes = nbytes

    def largest_owners(self, count: int = 5) -> tuple[MemoryOwner, ...]:
        """Return the messages that made most of what is here, for an OutOfMemory."""
        sizes: dict[str, int] = {}
        ids: dict[str, list[int]] = {}
        seen: set[Storage] = set()
        for buffer in self._buffers.values():
            storage = buffer.storage
            if storage is None:
                continue
            ids.setdefault(storage.label, []).append(buffer.id)
            if storage not in seen:
                seen.add(storage)
                sizes[storage.label] = sizes.get(storage.label, 0) + storage.nbytes
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:count]
        return tuple(MemoryOwner(label, n, tuple(ids[label][:IDS])) for label, n in largest)


def _never_made(buffer: Buffer) -> DependencyFailed:
    root = buffer.failed_root
    first = f"the message for buffer {short(root)}" if root > 0 else f"message {-root}"
    what = "its message" if root == buffer.id else first
    return DependencyFailed(f"buffer {short(buffer.id)} was never made: {what} failed")


def _not_written(buffer: Buffer, refusals: tuple[Refusal, ...]) -> DependencyFailed:
    text = f"buffer {short(buffer.id)} was not written: what should have written it failed"
    return DependencyFailed(text, unwritten=refusals)
