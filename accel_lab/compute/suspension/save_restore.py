"""What a context holds: kept on the host while its device is suspended, and restored.

All of it happens in a context process, on the dispatcher's thread. What shares memory is kept as
one range of bytes and the arrays that look into it, be they buffers or inside objects of `%%gpu`
cells; so it shares memory afterwards. Bytes pass through a few pieces of page-locked memory, which
threads empty into the files or fill from them while the device copies the next.
"""

import linecache
import math
import os
import pickle
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.execution.stream import SpecialStorage, Storage, Stream
from accel_lab.compute.machine.anonymous_files import PIECE_BYTES, Stripes, in_pages, pieces
from accel_lab.compute.process.environment import environment
from accel_lab.compute.suspension import cell_pickle
from accel_lab.compute.suspension.inventory import Inventory, NoRoomError
from accel_lab.compute.suspension.memory_image import Entry, Look, Memory, Range, flat, laid
from accel_lab.compute.suspension.pinned_readahead import IN_FLIGHT, ReadAhead, Slots
from accel_lab.errors import LibraryError

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context

THREADS = 14
FILES_WAIT_S = 30.0


class Record(NamedTuple):
    """All that a new context needs to be as the old one was.

    Attributes:
        failed: buffers that were never made, with the one that failed first.
        made: how many buffers functions have answered with, for their ids.
        objects: the piece and the length of their pickle.
        over_bytes: how much more there was than the limit: user code's arrays may go beyond it.
    """

    memories: list[Memory]
    failed: dict[int, int]
    made: int
    objects: tuple[int, int]
    folder: str
    sys_path: list[str]
    environment: dict[str, str]
    cells: dict[str, Any]
    over_bytes: int


class Saved(NamedTuple):
    """What became of a request to keep all.

    Attributes:
        lost: why something cannot be kept, by the id of its buffer or by its name.
        record: the piece and the length of the record; a length of 0 when nothing was kept.
        again: messages that make what is no array, as kernels, encoded without a number.
        nbytes: of the host's memory.
        things: what else is no array, and is rebuilt by its messages.
    """

    lost: dict[int | str, str]
    record: tuple[int, int] = (0, 0)
    again: tuple[bytes, ...] = ()
    buffers: int = 0
    objects: int = 0
    nbytes: int = 0
    things: tuple[int, ...] = ()

    @property
    def lost_buffers(self) -> dict[int, str]:
        """Those of what is lost that are buffers."""
        return {key: why for key, why in self.lost.items() if isinstance(key, int)}


class SaveRestore:
    """Keeps what a context holds, in files that the notebook sends, and brings it back."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._files: list[Stripes] = []
        self._arrival = threading.Condition()

    def received(self, fds: list[int]) -> None:
        """Take the files in which to keep things, or that have them; control thread."""
        with self._arrival:
            for one in self._files:
                one.close()
            self._files[:] = [Stripes(fds)]
            self._arrival.notify_all()

    def counted(self) -> tuple[int, int, int, str]:
        """Return how many buffers and objects there are, and how much they take.

        Last comes why the process cannot be kept as it is; "" where it can.
        """
        context = self._context
        buffers = sum(one.storage is not None for one in context.table.buffers())
        spaces = context.service(Workspaces).spaces().values()
        objects = sum(len(one.state().serials) for one in spaces)
        why = context.backend.unkept()
        if context.backend.ipc is not None and context.table.things("collective"):
            why = "it has a communicator, by which other devices' memory is open"
        return buffers, objects, context.used_bytes, why

    def save(self, room_bytes: int, *, drop: bool) -> Saved:
        """Copy all that the context holds to the host.

        Parameters:
            room_bytes: how much may be kept there.
            drop: go on without what cannot be kept.
        """
        with self._given() as files:
            inventory = Inventory(self._context)
            objects = inventory.take_objects()
            try:
                memories = inventory.leave_out(inventory.memories(), len(objects), room_bytes)
                if inventory.lost and not drop:
                    return Saved(inventory.lost)
                return _save(self._context, files, inventory, memories, objects)
            except (OSError, NoRoomError) as error:
                return Saved({"the host": str(error)})

    def restore(self, place: tuple[int, int], freed: frozenset[int]) -> dict[int | str, str]:
        """Bring back what was kept; return why something could not be.

        Parameters:
            place: the record's, as `Saved` has it.
            freed: buffers that nobody needs any more.

        Raises:
            OutOfMemory: there is less room than there was.
        """
        context, workspaces = self._context, self._context.service(Workspaces)
        with self._given() as files:
            record: Record = pickle.loads(_read(files, *place))  # noqa: S301 - our own
            memories = list(_without(record.memories, freed))
            limit_bytes = context.limit_bytes
            context.limit_bytes += record.over_bytes
            try:
                arrays = _bring_back(context, files, memories)
            finally:
                context.limit_bytes = limit_bytes
            for id_, root in record.failed.items():
                context.table.fail(id_, root)
            context.answered = record.made
            workspaces.settle(record.folder, record.sys_path)
            workspaces.take_over(record.environment)
            linecache.cache.update(record.cells)
            return cell_pickle.bring_back(_read(files, *record.objects), arrays, workspaces)

    @contextmanager
    def _given(self) -> Iterator[Stripes]:
        """Wait for the files, which come on another way than the request; close them at last."""
        with self._arrival:
            if not self._arrival.wait_for(lambda: self._files, FILES_WAIT_S):
                text = f"the context got no files for its buffers within {FILES_WAIT_S:g} s"
                raise LibraryError(text, library="suspension", name="FILES")
            files = self._files.pop()
        try:
            yield files
        finally:
            files.close()


# Moving the bytes.


def _without(memories: list[Memory], freed: frozenset[int]) -> Iterator[Memory]:
    """Leave out the buffers that are freed, and the memory that nothing looks into then."""
    for one in memories:
        entries = [entry for entry in one.entries if entry.id not in freed]
        if entries or one.arrays:
            yield one._replace(entries=entries)


def _save(
    context: "Context",
    files: Stripes,
    inventory: Inventory,
    found: list[tuple[Range, Memory]],
    objects: bytes,
) -> Saved:
    at = nbytes = 0
    memories: list[Memory] = []
    with ThreadPoolExecutor(THREADS, "accel_lab keeping") as pool:
        for id_, away in context.spill.held.items():
            buffer = context.table.mention(id_)
            shape, length = tuple(buffer.shape), int(away.data.nbytes)
            entry = Entry(id_, shape, buffer.dtype, Look(0, shape, (), None))
            refusals = context.table.refusals(buffer)
            memories.append(Memory(at, length, away.label, 0, [entry], {}, refusals))
            nbytes += in_pages(length)
            at = _write(pool, files, at, away.data)
        jobs: list[tuple[int, Any]] = []
        for one, memory in found:
            memories.append(memory._replace(piece=at))
            nbytes += in_pages(one.nbytes)
            if one.nbytes:
                image = flat(context.backend.arrays, one)
                for start in range(0, one.nbytes, PIECE_BYTES):
                    jobs.append((at, image[start : start + PIECE_BYTES]))
                    at += 1
        _download(context, files, pool, jobs)
        place = at, len(objects)
        at = _write(pool, files, at, np.frombuffer(objects, np.uint8))
        table, here = context.table.buffers(), environment()
        record = Record(
            memories,
            {one.id: one.failed_root for one in table if one.failed_root},
            context.answered,
            place,
            here.folder,
            here.path,
            dict(os.environ),
            {name: lines for name, lines in linecache.cache.items() if name.startswith("<")},
            max(0, sum(one.nbytes for one, _ in found) - context.limit_bytes),
        )
        data = pickle.dumps(record)
        _write(pool, files, at, np.frombuffer(data, np.uint8))
    kept = sum(len(one.entries) for one in memories)
    kept += len(inventory.again) + len(inventory.things)
    nbytes += len(objects) + len(data)
    again = tuple(inventory.again)
    things = tuple(inventory.things)
    return Saved(inventory.lost, (at, len(data)), again, kept, inventory.objects, nbytes, things)


def _download(
    context: "Context", files: Stripes, pool: ThreadPoolExecutor, jobs: list[tuple[int, Any]]
) -> None:
    """Copy arrays of bytes into their pieces."""
    with _streaming(context, "download") as stream:
        for buffer in context.table.buffers():
            if buffer.storage is not None:
                buffer.storage.read_on(stream)
        context.backend.join()
        slots = Slots(context.backend, [part.nbytes for _, part in jobs])
        marked: deque[tuple[Any, int, Any, int]] = deque()
        writing: deque[tuple[Future[None], Any]] = deque()

        def pass_on() -> None:
            event, piece, slot, nbytes = marked.popleft()
            stream.native.synchronize(event)
            writing.append((pool.submit(files.write, piece, slot[:nbytes]), slot))

        for piece, part in jobs:
            slot = slots.take()
            if slot is None:
                done, slot = writing.popleft()
                done.result()
            context.backend.download(part, slot[: part.nbytes])
            marked.append((stream.native.record(), piece, slot, part.nbytes))
            if len(marked) >= IN_FLIGHT:
                pass_on()
        while marked:
            pass_on()
        for done, _ in writing:
            done.result()


def _bring_back(context: "Context", files: Stripes, memories: list[Memory]) -> dict[int, Any]:
    """Make every memory again and fill it; return the arrays that belong to objects."""
    arrays: dict[int, Any] = {}
    jobs = [
        (memory.piece + i, min(PIECE_BYTES, memory.nbytes - i * PIECE_BYTES))
        for memory in memories
        for i in range(pieces(memory.nbytes))
    ]
    with (
        _streaming(context, "upload") as stream,
        ThreadPoolExecutor(THREADS, "accel_lab keeping") as pool,
    ):
        slots = Slots(context.backend, [nbytes for _, nbytes in jobs])
        ahead = ReadAhead(files, pool, stream, jobs, slots)
        for memory in memories:
            root, storage = _root(context, stream, memory)
            for index in range(pieces(memory.nbytes)):
                with ahead.next() as data:
                    context.backend.upload(root, index * PIECE_BYTES, data)
            _enter(context, storage, memory, root, arrays)
            del root, storage  # what is held here cannot give way to the next
        stream.native.synchronize(stream.native.record())
    return arrays


def _root(context: "Context", stream: Stream, memory: Memory) -> tuple[Any, Storage]:
    """Allocate a memory: an array by itself, or bytes into which several look."""
    if memory.kind:
        special = context.allocate_special(memory.kind, memory.nbytes, memory.label, -1)
        return special.whole, special
    first = memory.entries[0] if memory.entries else None
    storage = Storage(stream, memory.nbytes, memory.label)
    if first is not None and first.look.dtype is None:
        return context.allocate(first.shape, first.dtype, -1)[0], storage
    return context.allocate((memory.nbytes,), "uint8", -1)[0], storage


def _enter(
    context: "Context", storage: Storage, memory: Memory, root: Any, arrays: dict[int, Any]
) -> None:
    """Make the arrays that look into a memory, and enter the buffers."""
    xp = context.backend.arrays
    storage.used = memory.used
    if memory.refusals:
        context.table.withheld[storage] = memory.refusals
    for entry in memory.entries:
        if isinstance(storage, SpecialStorage) and not math.prod(entry.shape):
            array = storage.memory.array(entry.shape, entry.dtype)  # it may grow from there
        else:
            array = root if entry.look.dtype is None else laid(xp, root, entry.look)
        context.table.fill(entry.id, array, entry.shape, entry.dtype, storage)
    for number, look in memory.arrays.items():
        arrays[number] = laid(xp, root, look)


def _write(pool: ThreadPoolExecutor, files: Stripes, at: int, data: Any) -> int:
    """Write bytes that lie on the host; return the next free piece."""
    count = pieces(data.nbytes)
    parts = (data[i * PIECE_BYTES : (i + 1) * PIECE_BYTES] for i in range(count))
    list(pool.map(files.write, range(at, at + count), parts))
    return at + count


def _read(files: Stripes, at: int, nbytes: int) -> bytes:
    data = np.empty(nbytes, np.uint8)
    for i in range(pieces(nbytes)):
        files.read(at + i, data[i * PIECE_BYTES : (i + 1) * PIECE_BYTES])
    return data.tobytes()


@contextmanager
def _streaming(context: "Context", name: str) -> Iterator[Stream]:
    """Enqueue on a stream of this name."""
    stream, before = context.stream(name), context.active
    stream.begin("suspension" if name == "download" else "resumption")
    context.activate(stream)
    try:
        yield stream
    finally:
        if before is not None:
            context.activate(before)
