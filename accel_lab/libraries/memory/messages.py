"""The messages for memory that is not the pool's, and for the pool."""

from typing import ClassVar, Literal, NamedTuple, TypeVar, get_args

from accel_lab.compute.arrays.dtypes import itemsize, numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import ALL
from accel_lab.libraries.authoring.operand import describe, result
from accel_lab.libraries.authoring.options import DType, Ints
from accel_lab.libraries.authoring.shape import require_extents
from accel_lab.libraries.event import STREAMS
from accel_lab.libraries.memory.exported import Exported, require_exported

R = TypeVar("R")

Advice = Literal[
    "set_read_mostly",
    "unset_read_mostly",
    "set_preferred_location",
    "unset_preferred_location",
    "set_accessed_by",
    "unset_accessed_by",
]
Place = Literal["device", "host"]
ADVICE, PLACES = get_args(Advice), get_args(Place)


class Hints(NamedTuple):
    """What was asked of managed memory, and not taken back.

    Attributes:
        prefetched: where it was prefetched last, "device" or "host"; "" if never.
        read_mostly: whether it is read far more than it is written.
        preferred: where it had best be, "device" or "host"; "" for no such place.
        accessed_by: who is to reach it where it is: of "device" and "host" those that are.
        attached: the only stream that uses it; "" for any.
    """

    prefetched: str = ""
    read_mostly: bool = False
    preferred: str = ""
    accessed_by: tuple[str, ...] = ()
    attached: str = ""


class Description(NamedTuple):
    """What memory a buffer has.

    Attributes:
        kind: "pool", "managed", "growing" or "shared".
        nbytes: how much of the device's memory it takes, with its views.
        address: where the buffer begins.
        reserved_bytes: how far it may grow; 0 for what does not.
        hints: what was asked of managed memory.
    """

    kind: str
    nbytes: int
    address: int
    reserved_bytes: int = 0
    hints: Hints = Hints()


class PinnedState(NamedTuple):
    """What a context has of page-locked host memory; all 0 where nothing is page-locked.

    Attributes:
        segments_bytes: of the arena.
        used_bytes: in buffers that have given way, or are on their way.
        idle_bytes: kept to be used again; at most 4 GiB.
        locked, reused: how many pieces were page-locked for that, and how many were used again.
    """

    segments_bytes: int = 0
    used_bytes: int = 0
    idle_bytes: int = 0
    locked: int = 0
    reused: int = 0


class PoolState(NamedTuple):
    """The memory of a device at a moment.

    Attributes:
        limit_bytes: what buffers and workspaces may take together.
        used_bytes: what they take.
        idle_bytes: what the pool holds unused; `trim` gives it to the device.
        free_bytes: what an allocation could still get.
        away_bytes: what waits on the host for want of room.
        pinned: of the host's memory, what is page-locked.
    """

    limit_bytes: int
    used_bytes: int
    idle_bytes: int
    free_bytes: int
    away_bytes: int
    pinned: PinnedState


class OfMemory(Operation[R], frozen=True, array_like=True, eq=False):
    """Makes memory, or says something of it."""

    library: ClassVar[str] = "memory"
    dtypes: ClassVar = frozenset({""})
    uncaptured: ClassVar[str] = "it is about memory, which a graph has as it finds it"

    @property
    def dtype_key(self) -> str:
        """Nothing: whatever lies there, it is not computed with."""
        return ""


class Managed(OfMemory[AccelRef], frozen=True, array_like=True, eq=False, tag=592):
    """Make a buffer of zeros in managed memory, which the device and the host can both reach."""

    dtypes: ClassVar = ALL
    shape: Ints
    dtype: DType = "float32"

    @property
    def dtype_key(self) -> str:
        """The dtype that was given."""
        return str(self.dtype)

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        numpy_dtype(self.dtype)  # refuses what is none
        return result(self, require_extents("Managed", self.shape), self.dtype)


class OfManaged(OfMemory[None], frozen=True, array_like=True, eq=False):
    """Tells how managed memory will be used, all of it of which `x` is a part; no value changes.

    It is said again where the memory is made again after a loss.
    """

    written: ClassVar[str] = "x"
    spoils: ClassVar[bool] = False


class Prefetch(OfManaged, frozen=True, array_like=True, eq=False, tag=593):
    """Have managed memory move to the device or the host, behind what was sent before."""

    x: AccelRef
    to: str = "device"

    def infer(self) -> None:
        """Refuse a place that is none."""
        _require("Prefetch", "to", self.to, PLACES)


class Advise(OfManaged, frozen=True, array_like=True, eq=False, tag=594):
    """Give one of CUDA's six advices about managed memory; `of` is whom a location is about."""

    x: AccelRef
    advice: str
    of: str = "device"

    def infer(self) -> None:
        """Refuse what is no advice, and a place that is none."""
        _require("Advise", "advice", self.advice, ADVICE)
        _require("Advise", "of", self.of, PLACES)


class Attach(OfManaged, frozen=True, array_like=True, eq=False, tag=595):
    """Say that only one stream uses managed memory, by its library; any does if none is named."""

    x: AccelRef
    stream: str = ""

    def infer(self) -> None:
        """Refuse a stream that there is not."""
        _require("Attach", "stream", self.stream, ("", *sorted(STREAMS)))


class Growing(OfMemory[AccelRef], frozen=True, array_like=True, eq=False, tag=596):
    """Make a buffer of zeros for which addresses are reserved, up to `most` along its first axis.

    `grow` makes it longer there, at the same address. Only what it has by now takes memory.
    """

    dtypes: ClassVar = ALL
    shape: Ints
    most: int
    dtype: DType = "float32"

    @property
    def dtype_key(self) -> str:
        """The dtype that was given."""
        return str(self.dtype)

    @property
    def reserved_bytes(self) -> int:
        """How much it may come to take."""
        count = self.most
        for extent in require_extents("Growing", self.shape)[1:]:
            count *= extent
        return count * itemsize(self.dtype)

    def infer(self) -> Spec:
        """Return the shape and dtype that were given.

        Raises:
            InvalidArgument: it has no axis, or is longer than it may become.
        """
        numpy_dtype(self.dtype)  # refuses what is none
        shape = require_extents("Growing", self.shape)
        if not shape:
            raise InvalidArgument("Growing: a buffer of no axis cannot grow; give it one, as (0,)")
        if type(self.most) is not int or self.most < shape[0]:
            text = f"Growing: most must be an int from {shape[0]}, its first extent"
            raise InvalidArgument(f"{text}, not {self.most!r}")
        result(self, (self.most, *shape[1:]), self.dtype)  # refuses what no memory holds
        return result(self, shape, self.dtype)


class Grow(OfMemory[AccelRef], frozen=True, array_like=True, eq=False, tag=597):
    """Make a growing buffer `length` long: `x` and what is behind it, zeros where it is new.

    The result has the address of `x`, which stays what it was: the first part of it.
    """

    aliased: ClassVar[str] = "x"
    x: AccelRef
    length: int

    def infer(self) -> Spec:
        """Return `x` with another length.

        Raises:
            InvalidArgument: it has no axis, or is longer.
        """
        if not self.x.ndim:
            raise InvalidArgument(f"Grow: x is {describe(self.x)}, and only a first axis grows")
        if type(self.length) is not int or self.length < self.x.shape[0]:
            text = f"Grow: length must be an int from {self.x.shape[0]}, for x is"
            raise InvalidArgument(f"{text} {describe(self.x)}, not {self.length!r}")
        return result(self, (self.length, *self.x.shape[1:]), self.x.dtype)


class Shared(OfMemory[AccelRef], frozen=True, array_like=True, eq=False, tag=602):
    """Make a buffer of zeros in memory of its own, which other processes can open by `export`."""

    dtypes: ClassVar = ALL
    shape: Ints
    dtype: DType = "float32"

    @property
    def dtype_key(self) -> str:
        """The dtype that was given."""
        return str(self.dtype)

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        numpy_dtype(self.dtype)  # refuses what is none
        return result(self, require_extents("Shared", self.shape), self.dtype)


class Export(OfMemory[Exported], frozen=True, array_like=True, eq=False, tag=603):
    """Return what another process needs to open a shared buffer, once all that writes it is done.

    It holds until the buffer is freed, lost or suspended; who has it open by then keeps the memory.
    """

    x: AccelRef


class Read(OfMemory[AccelRef], frozen=True, array_like=True, eq=False, tag=604):
    """Make a buffer of what another process has exported, as it is when the device reads it."""

    dtypes: ClassVar = ALL
    opaque: ClassVar[str] = "it was read from another process; device.checkpoint(ref) keeps it"
    shape: tuple[int, ...]
    dtype: str
    place: tuple[int, ...]
    handle: bytes
    card: bytes
    offset: int

    @property
    def dtype_key(self) -> str:
        """The dtype that was given."""
        return str(self.dtype)

    def infer(self) -> Spec:
        """Return the shape and dtype that were given.

        Raises:
            InvalidArgument: it is nothing that was exported.
        """
        require_exported("Read", self.place, self.handle, self.offset)
        numpy_dtype(self.dtype)  # refuses what is none
        return result(self, require_extents("Read", self.shape), self.dtype)


class Describe(OfMemory[Description], frozen=True, array_like=True, eq=False, tag=598):
    """Return what memory a buffer has: its kind, how much it takes, and what was asked of it."""

    x: AccelRef


class Pool(OfMemory[PoolState], frozen=True, array_like=True, eq=False, tag=599):
    """Return how much memory the device's pool has given out, holds unused, and may still give."""


class Trim(OfMemory[int], frozen=True, array_like=True, eq=False, tag=600):
    """Give back what libraries and the pool hold unused; return how many bytes of it are free now.

    It waits for the device.
    """


class Limit(OfMemory[None], frozen=True, array_like=True, eq=False, tag=601):
    """Let buffers and workspaces take so many bytes and no more; 0 for all that the device has.

    What takes more by now gives way to the host, as far as it can.
    """

    nbytes: int

    def infer(self) -> None:
        """Refuse what is no number of bytes."""
        if type(self.nbytes) is not int or self.nbytes < 0:
            text = f"Limit: nbytes must be an int from 0, not {self.nbytes!r}"
            raise InvalidArgument(text)


def _require(message: str, field: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        text = f"{message}: {field} is {value!r}, and there are {', '.join(map(repr, known))}"
        raise InvalidArgument(text)
