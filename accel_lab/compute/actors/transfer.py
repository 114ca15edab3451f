"""Arrays between the notebook and the device: small ones in the message, others in the arena."""

import math
import pickle
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from accel_lab.compute.actors import offered_memory, things
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.builtin import (
    FAILED,
    TAIL_BYTES,
    WORD,
    Allocate,
    CopyIn,
    Download,
    Fetch,
    LastWrite,
    Offer,
    Put,
    Receive,
    RestoreThing,
    SaveThing,
    TakeBack,
    Unmap,
    Upload,
    Write,
    tail_of,
)
from accel_lab.compute.user_code.call import answer_parts
from accel_lab.compute.wire.side_channel import SPILLED
from accel_lab.errors import DependencyFailed, InvalidArgument, StaleRef

_COPY_BYTES_PER_S = 1e12  # the cards of which the last 50 µs matter copy faster
_SOON_BYTES = 2 << 30


class UploadActor(LibraryActor):
    """Writes buffers from the host, on a stream of its own."""

    library = "upload"
    _closing: ThreadPoolExecutor | None = None

    def statistics(self) -> Mapping[str, int]:
        """Return how many buffers gave way, came back, and what waits on the host; any thread."""
        spill = self.context.spill
        if not spill.moved:
            return {}
        return {
            "moved to the host": spill.moved,
            "brought back": spill.returned,
            SPILLED: spill.held_bytes,
        }

    @handles(Put)
    def put(self, m: Put, launch: Launch) -> None:
        """Copy the bytes that came with the message."""
        self.context.backend.upload(launch.write(), 0, m.data)

    @handles(Allocate)
    def allocate(self, m: Allocate, launch: Launch) -> None:
        """Allocate only."""
        if not m.axes and not m.kind:
            launch.write()
            return
        axes = m.axes or tuple(range(len(m.shape)))
        shape, order = tuple(m.shape[axis] for axis in axes), [axes.index(i) for i in sorted(axes)]
        if not m.kind:
            array, _ = self.context.allocate(shape, m.dtype, launch.seq)
            launch.take(array.transpose(order))
            return
        nbytes = math.prod(shape) * itemsize(m.dtype)
        storage = self.context.allocate_special(m.kind, nbytes, launch.label, launch.seq)
        array = storage.memory.array(shape, m.dtype).transpose(order)
        launch.adopt(launch.result, array, m.shape, m.dtype, storage)

    @handles(TakeBack)
    def take_back(self, m: TakeBack, _: Launch) -> None:
        """Have whatever needs the buffers fail."""
        table = self.context.table
        for id_ in m.ids:
            if m.uploaded:
                table.spoil(table.mention(id_))
            else:
                table.fail(id_, m.root)

    @handles(Upload)
    def upload(self, m: Upload, launch: Launch) -> None:
        """Copy from the arena; the bytes are read when the stream gets there."""
        source = self.context.arena.view(m.segment, m.start, m.nbytes)
        out = launch.write(m.out)
        self.context.backend.upload(out.transpose(m.axes) if m.axes else out, m.offset, source)

    @handles(Receive)
    def receive(self, m: Receive, launch: Launch) -> None:
        """Wait beside the dispatcher for what another device writes, and copy that."""
        tail = tail_of(m.nbytes)
        source = self.context.arena.view(m.segment, m.start, tail + TAIL_BYTES)

        def copy() -> None:
            self.context.backend.upload(launch.empty(), 0, source[: m.nbytes])

        launch.poll(partial(_has_come, source[tail:]), copy)

    @handles(Fetch)
    def fetch(self, m: Fetch, launch: Launch) -> None:
        """Wait beside the dispatcher for what another card has, and copy that from there."""
        tail = self.context.arena.view(m.segment, m.start, TAIL_BYTES)
        if self._closing is None:
            self._closing = ThreadPoolExecutor(1, thread_name_prefix="closing")
        offered_memory.fetch(launch, tail, self._closing.submit)

    @handles(CopyIn)
    def copy_in(self, m: CopyIn, launch: Launch) -> None:
        """Copy on the card."""
        begun = self.context.table.begun
        if m.sign is not None and launch.result not in begun:
            raise StaleRef("what had begun to copy the array is gone; put it again")
        array = begun.pop(launch.result, None)
        if array is None:
            array = launch.empty()
            self._copy(m, array)
        else:
            launch.take(array)
        launch.soon_s = soon_s(array.nbytes)

    def begin(self, m: CopyIn, result: int) -> None:
        """Begin with a copy whose message is on its way, if there is room."""
        context = self.context
        context.activate(self.stream)
        context.table.begun[result] = None
        with suppress(Exception):  # the message itself will meet it, and answer
            array, _ = context.take(m.shape, m.dtype)
            if array is not None:
                self._copy(m, array)
                context.table.begun[result] = array

    def _copy(self, m: CopyIn, array: Any) -> None:
        ipc = self.context.backend.ipc
        if ipc is None:
            raise InvalidArgument("this device reads no memory of another process")
        ipc.copy_in(array, m.handle, m.offset)
        if m.sign is not None:
            segment, start, value = m.sign
            ipc.write_word(self.context.arena.view(segment, start, WORD), value)

    @handles(LastWrite)
    def last_write(self, m: LastWrite, launch: Launch) -> None:
        """Look at once."""
        x: Any = m.x
        found, kind = x.storage, x.storage.write_kind
        name, library = (kind, "") if isinstance(kind, str) else (kind.__name__, kind.library)
        write = Write(found.writer.name, found.write_operation, found.write_seq, name, library)
        seq = launch.seq
        launch.finish = lambda: answer_parts(seq, pickle.dumps(write))
        launch.at_once = True

    @handles(RestoreThing)
    def restore_thing(self, m: RestoreThing, launch: Launch) -> None:
        """Have its library make it of what was kept."""
        place = m.place
        source = self.context.arena.view(place.segment, place.start, place.nbytes)
        things.restore(launch, m.of, m.kind, source.tobytes())

    @handles(Unmap)
    def unmap(self, m: Unmap, launch: Launch) -> None:
        """Have it closed on another thread: the driver may wait for the card then."""
        ipc = self.context.backend.ipc
        close = None if ipc is None else ipc.unmap(m.handle)
        if close is not None:
            launch.defer(close, lambda _: None)


class DownloadActor(LibraryActor):
    """Reads buffers to the host, on a stream of its own."""

    library = "download"
    leads_out = True

    @handles(Download)
    def download(self, m: Download, launch: Launch) -> None:
        """Copy to the arena."""
        target = self.context.arena.view(m.segment, m.start, m.x.nbytes)
        x = launch.read(m.x)
        self.context.backend.download(x, target)
        if m.with_axes:
            seq, axes, of = launch.seq, _axes_of(x), m.x.storage
            placed = None if axes is None else (axes, of.kind)
            launch.finish = lambda: answer_parts(seq, pickle.dumps(placed))

    @handles(Offer)
    def offer(self, m: Offer, launch: Launch) -> None:
        """Say where it lies, once it is made."""
        tail = self.context.arena.view(m.segment, m.start, TAIL_BYTES)
        offered_memory.offer(launch, launch.read(m.x), tail)

    @handles(SaveThing)
    def save_thing(self, m: SaveThing, launch: Launch) -> None:
        """Copy what it is made of."""
        seq, saved = launch.seq, things.save(launch, m.thing)
        launch.finish = lambda: answer_parts(seq, pickle.dumps(pickle.dumps(saved)))


def soon_s(nbytes: int) -> float:
    """Return how long to look for the end of a copy on a card without sleeping, in seconds.

    A wait that sleeps ends some 50 µs late. 0 for what takes long: that is a small part of it then.
    """
    return nbytes / _COPY_BYTES_PER_S if nbytes <= _SOON_BYTES else 0.0


def _has_come(tail: Any) -> bool:
    """Whether the contents before this are there.

    Raises:
        DependencyFailed: they never will be.
    """
    said = int(tail[:WORD].view(np.uint32)[0])  # once: it changes meanwhile
    if said == FAILED:
        why = tail[WORD:].tobytes().rstrip(b"\0").decode(errors="ignore")
        raise DependencyFailed(f"the buffer that was to be copied did not come: {why}")
    return said != 0


def _axes_of(array: Any) -> tuple[int, ...] | None:
    """Return the axes of an array as they lie in memory; () for C order, None for neither."""
    if array.flags.c_contiguous:
        return ()
    axes = tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
    return axes if array.transpose(axes).flags.c_contiguous else None
