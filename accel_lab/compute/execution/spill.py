"""Move buffers to the host when memory is short, and back when a message names them.

All of it happens in a context, on the dispatcher's thread.
"""

import gc
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.stream import Storage

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context

COLLECT_EVERY_S = 1.0


class Away(NamedTuple):
    """What a buffer has while it is not on the device: its bytes in C order."""

    data: Any
    label: str


class Spill:
    """The ladder that an allocation climbs before it fails.

    Garbage is collected, what caches hold is given back, and then the buffers that have not been
    named for longest go to the host. A buffer that shares its memory, with a view or with an object
    of the user's, stays: nothing would be freed. So does one whose bytes are not in C order: it
    would come back in another order, in which a library may round otherwise.

    Parameters:
        limit_bytes: how much may wait on the host; 0 leaves every buffer where it is.

    Attributes:
        held: what waits there, by the buffer's id.
        held_bytes: how much that is.
        moved, returned: how many buffers have gone and come back so far.
    """

    def __init__(self, context: "Context", limit_bytes: int) -> None:
        self._context = context
        self._limit = limit_bytes
        self._collected = -COLLECT_EVERY_S
        self.held: dict[int, Away] = {}
        self.held_bytes = self.moved = self.returned = 0
        self.is_busy: Callable[[Storage], bool] = lambda _: False
        """Whether something that is not done has taken this memory's array."""
        self.collect_there: Callable[[], None] = lambda: None
        """Have the notebook free what nobody there can reach; blocks for that."""
        probe = Buffer(0)
        probe.array = [probe]
        self._alone = _references(probe)

    def make_room(self, has_room: Callable[[], bool], now: int) -> bool:
        """Climb until there is room; return whether there is.

        Parameters:
            now: the message that asks, whose operands stay.
        """
        try:
            return self._climb(has_room, now)
        finally:
            self._forget_order()

    def _climb(self, has_room: Callable[[], bool], now: int) -> bool:
        is_trimmed = time.monotonic() - self._collected >= COLLECT_EVERY_S
        if is_trimmed:
            self._collected = time.monotonic()
            gc.collect()
            while self._context.give_way():
                if has_room():
                    return True
            self._context.trim()
            if has_room():
                return True
        for buffer in self._coldest(now):
            if self._move(buffer) and has_room():
                return True
        self.collect_there()
        if has_room():
            return True
        if is_trimmed:
            return False
        self._context.trim()  # of what is kept since it last was
        return has_room()

    def gather(self, operands: tuple[Any, ...], now: int) -> None:
        """Have the operands of a message on the device.

        Raises:
            OutOfMemory: they do not fit; those that wait on the host go on doing so.
            DependencyFailed, StaleRef: as `BufferTable.require`.
        """
        for operand in operands:
            if operand.storage is not None:
                operand.storage.used = now
        for operand in operands:
            if operand.storage is None:
                if operand.id in self.held:
                    self._return(operand, now)
                else:
                    self._context.table.require(operand)

    def _forget_order(self) -> None:
        """Have streams wait anew for each other.

        What they have waited for now counts the launch for whose sake that was, and its work is
        still to be enqueued.
        """
        for stream in self._context.streams.values():
            stream.seen.clear()

    def forget(self, id_: int) -> None:
        """Drop what waits for a buffer that is freed."""
        away = self.held.pop(id_, None)
        if away is not None:
            self.held_bytes -= away.data.nbytes

    def _coldest(self, now: int) -> list[Buffer]:
        """Return what may go, the longest unnamed first."""
        found = [
            buffer
            for buffer in self._context.table.buffers()
            if self._may_go(buffer) and buffer.storage.used != now  # type: ignore[union-attr]
        ]
        return sorted(found, key=lambda buffer: buffer.storage.used)  # type: ignore[union-attr]

    def _may_go(self, buffer: Buffer) -> bool:
        storage = buffer.storage
        return (
            storage is not None
            and not storage.kind
            and 0 < storage.nbytes <= self._limit - self.held_bytes
            and _references(buffer) == self._alone
            and self._context.backend.is_whole(buffer.array)
            and not self.is_busy(storage)
        )

    def _move(self, buffer: Buffer) -> bool:
        """Copy a buffer to the host and free its memory; False when there is no room for that."""
        context, storage = self._context, buffer.storage
        assert storage is not None
        if storage.nbytes > self._limit - self.held_bytes:
            return False
        stream, before = context.stream("download"), context.active
        try:
            data = context.backend.host_memory(buffer.array.nbytes)
            stream.begin("to the host")
            context.activate(stream)
            storage.read_on(stream)
            context.backend.download(buffer.array, data)
            stream.native.synchronize(stream.native.record())
        except MemoryError:
            return False
        finally:
            if before is not None:
                context.activate(before)
        self.held[buffer.id] = Away(data, storage.label)
        self.held_bytes += data.nbytes
        self.moved += 1
        context.table.leave(buffer)
        return True

    def _return(self, buffer: Buffer, now: int) -> None:
        context, away = self._context, self.held[buffer.id]
        stream, before = context.stream("upload"), context.active
        stream.begin("back from the host")
        context.activate(stream)
        try:
            array, nbytes = context.allocate(buffer.shape, buffer.dtype, now)
            context.backend.upload(array, 0, away.data)
            stream.native.synchronize(stream.native.record())  # the bytes are dropped below
        finally:
            if before is not None:
                context.activate(before)
        self.forget(buffer.id)
        self.returned += 1
        storage = Storage(stream, nbytes, away.label)
        storage.used = now
        context.table.fill(buffer.id, array, buffer.shape, buffer.dtype, storage)


def _references(buffer: Buffer) -> int:
    return sys.getrefcount(buffer.array)
