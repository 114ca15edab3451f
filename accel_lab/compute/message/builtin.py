"""The messages that every device takes: buffers in and out, calls."""

import math
from typing import Any, ClassVar, NamedTuple

import msgspec

from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument


class Sign(NamedTuple):
    """What a card writes, and where.

    Attributes:
        segment, offset: of the arena, where the 32-bit word lies.
        value: what is written there, from 1 to 4.
    """

    segment: int
    offset: int
    value: int


INLINE_BYTES = 16 << 10


class Free(Operation[None], frozen=True, array_like=True, eq=False, tag=1):
    """Forget these buffers; the device sends it when their last handles are gone."""

    ids: list[int]


class CellBegan(Operation[None], frozen=True, array_like=True, eq=False, tag=32):
    """The messages behind it are this cell's, 0 for a program's; where somebody traces them."""

    fence: ClassVar[bool] = True
    number: int


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
    """Make a buffer whose contents uploads will write; `axes`, `kind` are as in a `Checkpoint`."""

    library: ClassVar[str] = "upload"
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[int, ...] = ()
    kind: str = ""

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

    def overwrites(self) -> tuple[AccelRef, ...]:
        """Return the buffer that it fills."""
        return (self.out,)


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


WORD = 4
TAIL_BYTES = 512
ARRIVED, FAILED = 1, 2
"""What the word behind the contents of a `Receive` says; with FAILED a text stands behind it."""


def tail_of(nbytes: int) -> int:
    """Return where the word behind so many bytes lies."""
    return -(-nbytes // WORD) * WORD


class Receive(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=19):
    """Make a buffer of arena bytes that another device is still to write, in C order.

    Behind them, at the next multiple of 4, is a word that says when they are there, and what there
    is to say if they never will be: TAIL_BYTES together.
    """

    library: ClassVar[str] = "upload"
    timeout_s: ClassVar[float | None] = None
    opaque: ClassVar[str] = "it was copied from another device; device.checkpoint(ref) keeps it"
    shape: tuple[int, ...]
    dtype: str
    segment: int
    start: int
    nbytes: int

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        return Spec(self.shape, self.dtype)


OFFERED = 3
"""What a first word says where memory can be opened, whose handle and offset stand behind it."""
LET_GO, OPEN = TAIL_BYTES // WORD - 2, TAIL_BYTES // WORD - 1
"""The last words: whether a buffer that was offered need not be kept, and whether it is open."""
TEXT_BYTES = TAIL_BYTES - 3 * WORD
OFFSET_BYTES = 8


class Offer(Operation[None], frozen=True, array_like=True, eq=False, tag=29):
    """Say in the arena where `x` lies once it is made, and keep it as it is until that is copied.

    At `start` are TAIL_BYTES, which `Fetch` has too. It is not run again after a loss: a recovery
    that waited for the other device could wait for one that waits for this.
    """

    library: ClassVar[str] = "download"
    timeout_s: ClassVar[float | None] = None
    opaque: ClassVar[str] = "the copy that it was for is over"
    x: AccelRef
    segment: int
    start: int

    def only_reads(self) -> tuple[AccelRef, ...]:
        """Return nothing: each device offers its own."""
        return ()


class Fetch(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=30):
    """Make a buffer of what another card's context is still to `Offer`, card to card."""

    library: ClassVar[str] = "upload"
    timeout_s: ClassVar[float | None] = None
    opaque: ClassVar[str] = Receive.opaque
    shape: tuple[int, ...]
    dtype: str
    segment: int
    start: int

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        return Spec(self.shape, self.dtype)


class Write(NamedTuple):
    """What wrote a buffer last, of all that its context was sent until then.

    Attributes:
        stream: on which it is enqueued, by its name; `event.record(gpu, write.library)` is behind.
        sequence: which of that stream's operations it is, from 1; that of an event behind it is
            the same or higher.
        request: its message's number, as in the journal; 0 if it was none, as what brings a buffer
            back from the host.
        kind: what it is, as "Gemm".
        library: whose message it is; "" if it was none.
    """

    stream: str
    sequence: int
    request: int
    kind: str
    library: str


class LastWrite(Operation[Write], frozen=True, array_like=True, eq=False, tag=31):
    """Tell what wrote `x` last; answered at once, whatever the streams are at."""

    library: ClassVar[str] = "upload"
    x: AccelRef


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


OF_TABLE = frozenset((Free, Withhold, Release, CellBegan))
"""What no library does: it changes the table of buffers, or says whose messages follow."""


class Download(Operation[Any], frozen=True, array_like=True, eq=False, tag=5):
    """Copy `x` in C order into the arena.

    The answer is nothing, or with `with_axes` the axes of `x` and its memory's kind, as in a
    `Checkpoint`: None where its elements do not follow each other in memory. `nbytes` is for who
    carries the bytes on.
    """

    library: ClassVar[str] = "download"
    x: AccelRef
    segment: int
    start: int
    with_axes: bool = False
    nbytes: int = 0

    def only_reads(self) -> tuple[AccelRef, ...]:
        """Return nothing: each device fetches its own, and what is kept is kept by its number."""
        return ()


class TakeBack(Operation[None], frozen=True, array_like=True, eq=False, tag=12):
    """Take the place of a message that was taken back before it was sent: `ids` are never made.

    With `uploaded` they have been allocated, and what was taken back would have filled them. By
    `root`, the first of its ids on the wire, made or not, it is told what needs them.
    """

    library: ClassVar[str] = "upload"
    root: int
    ids: list[int]
    uploaded: bool = False


class Location(msgspec.Struct, frozen=True, array_like=True):
    """Bytes in the arena."""

    segment: int
    start: int
    nbytes: int


class SaveThing(Operation[bytes], frozen=True, array_like=True, eq=False, tag=27):
    """Answer with what is no array, as its `checkpoint` gives it, pickled."""

    library: ClassVar[str] = "download"
    thing: Ref[Any]


class RestoreThing(Operation[Any], frozen=True, array_like=True, eq=False, tag=28):
    """Make what is no array of what `SaveThing` has answered, which lies in the arena.

    `of` is the library that has made it, and `kind` what it is.
    """

    library: ClassVar[str] = "upload"
    of: str
    kind: str
    place: Location


class Run(Operation[Any], frozen=True, array_like=True, eq=False, tag=6):
    """Call a pickled function; operand `i` stands where the pickle has the persistent id `i`.

    A name there stands for a namespace of `%%gpu` cells, and a class for the context's own object
    of it (`in_context`).

    `pure` promises that no operand is written; otherwise those count as written that `writes`
    lists by their position in `refs`, or all of them. A pickle larger than a frame lies in the
    arena, at `blob_at`. `called` is the function's name.
    """

    library: ClassVar[str] = "run"
    timeout_s: ClassVar[float | None] = None
    runs_user_code: ClassVar[bool] = True
    subject: ClassVar[str] = "called"
    refs: tuple[Ref[Any], ...]
    blob: bytes
    pure: bool
    blob_at: Location | None = None
    writes: tuple[int, ...] | None = None
    called: str = ""

    def changes(self) -> tuple[Any, ...]:
        """Return those that it is said to write; of the others nobody knows."""
        return tuple(self.refs[i] for i in self.writes or ())

    def only_reads(self) -> tuple[AccelRef, ...]:
        """Return none where nobody has said what it writes: that is all of them then."""
        if not self.pure and self.writes is None:
            return ()
        written = self.changes()
        arrays = [ref for ref in self.refs if isinstance(ref, AccelRef)]
        return tuple([ref for ref in arrays if not any(ref is one for one in written)])


class Ping(Operation[None], frozen=True, array_like=True, eq=False, tag=8):
    """Do nothing, and answer: what a message costs by itself."""

    library: ClassVar[str] = "run"
