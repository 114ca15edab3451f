"""Arrays between the notebook and the device: small ones in the message, others by the arena."""

import math
import pickle
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.dtypes import itemsize
from accel_lab.compute.flag import WORD, Sign
from accel_lab.compute.launch import Launch, LibraryActor, handles
from accel_lab.compute.operation import Operation, Spec
from accel_lab.compute.user_code import answer_parts
from accel_lab.errors import InvalidArgument, StaleRef

INLINE_BYTES = 16 << 10
_COPY_BYTES_PER_S = 1e12  # the cards of which the last 50 µs matter copy faster
_SOON_BYTES = 2 << 30


class Free(Operation[None], frozen=True, array_like=True, eq=False, tag=1):
    """Forget these buffers; the device sends it when their last handles are gone."""

    ids: list[int]


class Put(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=2):
    """Make a buffer of `data`, an array's bytes in C order, at most 16 KiB."""

    library: ClassVar[str] = "upload"
    shape: tuple[int, ...]
    dtype: str
    data: bytes

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        if math.prod(self.shape) * itemsize(self.dtype) != len(self.data):
            text = f"{len(self.data)} bytes are no {self.dtype}{list(self.shape)}"
            raise InvalidArgument(text)
        return Spec(self.shape, self.dtype)


class Allocate(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=3):
    """Make a buffer whose contents uploads will write; its `axes` are as in a `Checkpoint`."""

    library: ClassVar[str] = "upload"
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[int, ...] = ()

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        return Spec(self.shape, self.dtype)


class Upload(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=4):
    """Copy arena bytes into `out`, beginning at its byte `offset`, in C order of these `axes`."""

    library: ClassVar[str] = "upload"
    out: AccelRef
    offset: int
    segment: int
    start: int
    nbytes: int
    axes: tuple[int, ...] = ()

    def changes(self) -> tuple[AccelRef, ...]:
        """Return nothing: the buffer is new, and fails with this."""
        return ()


class CopyIn(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=17):
    """Make a buffer of another process's memory on the same card; answered when it is copied.

    `handle` is the allocation's (`cudaIpcGetMemHandle`), `offset` the byte of it at which the array
    begins, in C order. The context keeps the allocation open until it gets `Unmap`. With a `sign`,
    which the card writes when it has copied, if it can, it comes twice: the first, which has no
    number, has the context begin.
    """

    library: ClassVar[str] = "upload"
    opaque: ClassVar[str] = (
        "it was copied from memory of the notebook's own CUDA; device.checkpoint(ref) keeps it"
    )
    shape: tuple[int, ...]
    dtype: str
    handle: bytes
    offset: int
    sign: Sign | None = None

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        return Spec(self.shape, self.dtype)


class Unmap(Operation[None], frozen=True, array_like=True, eq=False, tag=18):
    """Close what `CopyIn` has opened by this handle; answered when it is, also if it was not open.

    Sent when no `CopyIn` of it is unanswered, and not recorded.
    """

    library: ClassVar[str] = "upload"
    handle: bytes


class Withhold(Operation[None], frozen=True, array_like=True, eq=False, tag=25):
    """Refuse the first of these buffers, and what shares its memory: the others.

    `failed` should have written it, and failed before it was sent or with another context; `root`
    is as in a `Refusal`. Answered if it has a number, and not recorded; so is `Release`.
    """

    library: ClassVar[str] = "upload"
    buffers: tuple[AccelRef, ...]
    root: int = 0
    failed: int = 0


class Release(Operation[None], frozen=True, array_like=True, eq=False, tag=26):
    """Refuse these buffers no more for what `failed`: whoever sent what follows knows of it."""

    library: ClassVar[str] = "upload"
    buffers: tuple[AccelRef, ...]
    failed: tuple[int, ...] = ()


OF_TABLE = frozenset((Free, Withhold, Release))
"""What no library does: it changes the table of buffers."""


class Download(Operation[Any], frozen=True, array_like=True, eq=False, tag=5):
    """Copy `x` in C order into the arena.

    The answer is nothing, or with `with_axes` the axes of `x` as in a `Checkpoint`: None where its
    elements do not follow each other in memory.
    """

    library: ClassVar[str] = "download"
    x: AccelRef
    segment: int
    start: int
    with_axes: bool = False


class TakeBack(Operation[None], frozen=True, array_like=True, eq=False, tag=12):
    """Take the place of a message that was taken back before it was sent: `made` is never made.

    With `uploaded` it has been allocated already, and what was taken back would have filled it.
    """

    library: ClassVar[str] = "upload"
    made: int
    uploaded: bool = False


class UploadActor(LibraryActor):
    """Writes buffers from the host, on a stream of its own."""

    library = "upload"

    def statistics(self) -> Mapping[str, int]:
        """Return how many buffers gave way, came back, and what waits on the host; any thread."""
        spill = self.context.spill
        if not spill.moved:
            return {}
        return {
            "moved to the host": spill.moved,
            "brought back": spill.returned,
            "bytes on the host": spill.held_bytes,
        }

    @handles(Put)
    def put(self, m: Put, launch: Launch) -> None:
        """Copy the bytes that came with the message."""
        self.context.backend.upload(launch.write(), 0, m.data)

    @handles(Allocate)
    def allocate(self, m: Allocate, launch: Launch) -> None:
        """Allocate only."""
        if not m.axes:
            launch.write()
            return
        shape = tuple(m.shape[axis] for axis in m.axes)
        array, _ = self.context.allocate(shape, m.dtype, launch.seq)
        launch.take(array.transpose([m.axes.index(axis) for axis in range(len(shape))]))

    @handles(TakeBack)
    def take_back(self, m: TakeBack, _: Launch) -> None:
        """Have whatever needs the buffer fail."""
        table = self.context.table
        if m.uploaded:
            table.spoil(table.mention(m.made))
        else:
            table.fail(m.made, m.made)

    @handles(Upload)
    def upload(self, m: Upload, launch: Launch) -> None:
        """Copy from the arena; the bytes are read when the stream gets there."""
        source = self.context.arena.view(m.segment, m.start, m.nbytes)
        out = launch.write(m.out)
        self.context.backend.upload(out.transpose(m.axes) if m.axes else out, m.offset, source)

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
        backend = self.context.backend
        backend.copy_in(array, m.handle, m.offset)
        if m.sign is not None:
            segment, start, value = m.sign
            backend.write_word(self.context.arena.view(segment, start, WORD), value)

    @handles(Unmap)
    def unmap(self, m: Unmap, launch: Launch) -> None:
        """Have it closed on another thread: the driver may wait for the card then."""
        close = self.context.backend.unmap(m.handle)
        if close is not None:
            launch.defer(close, _nothing)


class DownloadActor(LibraryActor):
    """Reads buffers to the host, on a stream of its own."""

    library = "download"

    @handles(Download)
    def download(self, m: Download, launch: Launch) -> None:
        """Copy to the arena."""
        target = self.context.arena.view(m.segment, m.start, m.x.nbytes)
        x = launch.read(m.x)
        self.context.backend.download(x, target)
        if m.with_axes:
            seq, axes = launch.seq, _axes_of(x)
            launch.finish = lambda: answer_parts(seq, pickle.dumps(axes))


def soon_s(nbytes: int) -> float:
    """Return how long to look for the end of a copy on a card without sleeping, in seconds.

    A wait that sleeps ends some 50 µs late. 0 for what takes long: that is a small part of it then.
    """
    return nbytes / _COPY_BYTES_PER_S if nbytes <= _SOON_BYTES else 0.0


def _axes_of(array: Any) -> tuple[int, ...] | None:
    """Return the axes of an array as they lie in memory; () for C order, None for neither."""
    if array.flags.c_contiguous:
        return ()
    axes = tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
    return axes if array.transpose(axes).flags.c_contiguous else None


def _nothing(_: None) -> None:
    """Nothing is left to do when it is closed."""
