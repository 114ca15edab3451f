"""Streams of a context and the waits between them.

Work on one stream runs in order. Between streams a wait is inserted for each read after a
write, write after read and write after write; the event is recorded only when such a hazard
is met, so a program that stays on one stream never pays for one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from accel_lab.compute.execution.held_objects import HeldObjects


class NativeStream(Protocol):
    """A backend's stream."""

    def activate(self) -> None:
        """Make it the stream on which the library's calls of this thread are enqueued."""

    def before_work(self, call: Callable[[], Callable[[], None] | None]) -> None:
        """Have this called once, just before the next work is enqueued, where that is known.

        What it returns is called as soon as the first of that work has been enqueued.
        """

    def record(self) -> Any:
        """Return an event that fires when all work enqueued so far is done."""

    def wait(self, event: Any) -> None:
        """Hold later work of this stream until the event fires; does not block the caller."""

    def done(self) -> bool:
        """Whether all enqueued work is done; raises what the device raised."""

    def reached(self, event: Any) -> bool:
        """Whether the event has fired; raises what the device raised."""

    def synchronize(self, event: Any) -> None:
        """Block the calling thread until the event fires; raises what the device raised."""


class Stream:
    """A native stream and what it has already waited for."""

    __slots__ = (
        "asked",
        "kind",
        "name",
        "native",
        "operations",
        "priority",
        "seen",
        "seq",
        "waited",
        "waits",
    )

    def __init__(
        self, name: str, native: NativeStream, priority: int = 0, asked: int | None = None
    ) -> None:
        self.name = name
        self.native = native
        self.priority = priority
        """What it has: work of a higher one is begun first."""
        self.asked = priority if asked is None else asked
        """What was asked for."""
        self.operations = 0
        self.seq = 0
        """The request that enqueues there now, 0 for none."""
        self.kind: type | str = ""
        """What that is."""
        self.waits = 0
        self.seen: dict[Stream, int] = {}
        self.waited: Callable[[], object] | None = None
        """Called after each wait is enqueued, if there is one."""

    def begin(self, kind: str) -> None:
        """Note that something is enqueued from here on which is no request."""
        self.operations += 1
        self.seq, self.kind = 0, kind

    def after(self, other: "Stream", operation: int) -> None:
        """Run later work of this stream after `other` has finished its `operation`."""
        if self.seen.get(other, 0) < operation:
            self.native.wait(other.native.record())
            self.has_waited(other, other.operations)

    def has_waited(self, other: "Stream", operation: int) -> None:
        """Note that later work of this stream has been made to wait for that operation."""
        self.seen[other] = max(operation, self.seen.get(other, 0))
        self.waits += 1
        if self.waited is not None:
            self.waited()


class Storage:
    """One allocation and the streams that use it; views of it share it.

    Attributes:
        kind: what makes such memory again; "" where it is the pool's, as most is.
    """

    kind: ClassVar[str] = ""

    __slots__ = (
        "home",
        "label",
        "nbytes",
        "readers",
        "seen",
        "used",
        "users",
        "write_kind",
        "write_operation",
        "write_seq",
        "writer",
    )

    def __init__(self, home: Stream, nbytes: int, label: str) -> None:
        self.home = home
        self.nbytes = nbytes
        self.label = label
        self.users = 0
        self.used = 0  # the last message that named it
        self.seen = False  # whether user code has had it, and may have it still
        self.writer = home
        self.write_operation = home.operations
        self.write_seq, self.write_kind = home.seq, home.kind  # who has written it last
        self.readers: dict[Stream, int] = {}

    def read_on(self, stream: Stream) -> None:
        """Order `stream` after the last write and note the read."""
        writer = self.writer
        if writer is not stream:
            # What was uploaded once is read for ever, long after its wait: skip the call.
            if stream.seen.get(writer, 0) < self.write_operation:
                stream.after(writer, self.write_operation)
            self.readers[stream] = stream.operations

    def write_on(self, stream: Stream) -> None:
        """Order `stream` after the last write and every read, and note the write."""
        if self.writer is not stream:
            stream.after(self.writer, self.writer.operations)
        if self.readers:
            for reader, operation in self.readers.items():
                if reader is not stream:
                    stream.after(reader, operation)
            self.readers = {}
        self.writer = stream
        self.write_operation = stream.operations
        self.write_seq, self.write_kind = stream.seq, stream.kind

    def release(self) -> None:
        """Order the home stream, to whose pool the memory returns, after every use."""
        home = self.home
        if self.writer is not home:
            home.after(self.writer, self.writer.operations)
        for reader, operation in self.readers.items():
            if reader is not home:
                home.after(reader, operation)


class SpecialMemory(Protocol):
    """Memory that is not the pool's: a library makes it, and makes it again after a loss.

    It stays where it is when memory is short, and is free when nothing has this any more, nor its
    arrays.

    Attributes:
        used_bytes: how much of it, from its begin, is in use.
    """

    used_bytes: int

    @property
    def nbytes(self) -> int:
        """How much it takes on the device."""

    @property
    def kind(self) -> str:
        """What makes such memory again: the library's name, a space, and what that understands."""

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""


class SpecialStorage(Storage):
    """The storage of such memory.

    Parameters:
        held: keeps the memory until the streams are behind its last use.
    """

    __slots__ = ("_held", "memory")

    def __init__(
        self, home: Stream, memory: SpecialMemory, label: str, held: "HeldObjects"
    ) -> None:
        super().__init__(home, memory.nbytes, label)
        self.memory = memory
        self._held = held

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What makes such memory again."""
        return self.memory.kind

    @property
    def whole(self) -> Any:
        """All of it that is in use, as bytes."""
        return self.memory.array((self.memory.used_bytes,), "uint8")

    def release(self) -> None:
        """Let go of the memory after every use of it."""
        super().release()
        self._held.add(0, self.home, self.memory)
