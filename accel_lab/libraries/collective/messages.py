"""The messages of collective operations: each is a rank's part of one.

What all ranks do alike has one message for all. Where the ranks differ, as those of a broadcast,
who has the array sends `Give` and who gets one sends `Take`. Results are whole arrays in C order.
"""

from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import ALL
from accel_lab.libraries.authoring.operand import require_out
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.collective.errors import CollectiveAborted

R = TypeVar("R")
Reduction: TypeAlias = Literal["sum", "prod", "min", "max", "avg"]
GiveCall: TypeAlias = Literal["reduce", "gather", "broadcast", "send"]
TakeCall: TypeAlias = Literal["broadcast", "scatter", "send"]

REDUCIBLE = ALL - {"bool", "int16", "uint16", "complex64", "complex128"}
"""What NCCL reduces; its moves take any bytes."""


class Collective(Operation[R], frozen=True, array_like=True, eq=False):
    """A part of a collective operation; `comm` is the number of the communicator."""

    library: ClassVar[str] = "collective"
    grouped: ClassVar = CollectiveAborted
    comm: int


class MakeKey(Operation[str], frozen=True, array_like=True, eq=False, tag=460):
    """Return a key by which the ranks of a new communicator find each other."""

    library: ClassVar[str] = "collective"
    dtypes: ClassVar = frozenset({""})
    opaque: ClassVar[str] = "a communicator is of its time"
    size: int


class Capabilities(Operation[dict[str, Any]], frozen=True, array_like=True, eq=False, tag=474):
    """Return what does the work here, and what it can."""

    library: ClassVar[str] = "collective"
    dtypes: ClassVar = frozenset({""})
    opaque: ClassVar[str] = "it is of this machine"


class Join(Collective[None], frozen=True, array_like=True, eq=False, tag=461):
    """Become a rank of the communicator that a key names; waits for all ranks."""

    dtypes: ClassVar = frozenset({""})
    key: str


class Leave(Operation[None], frozen=True, array_like=True, eq=False, tag=462):
    """Forget a communicator, if there is one of this number."""

    library: ClassVar[str] = "collective"
    dtypes: ClassVar = frozenset({""})
    opaque: ClassVar[str] = "a communicator is of its time"
    comm: int


class AllReduce(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=463):
    """Return the reduction of all ranks' `x`, on each of them; `scale` multiplies `x` before."""

    dtypes: ClassVar = REDUCIBLE
    x: AccelRef
    _: Options
    op: Reduction = "sum"
    scale: float | None = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape and dtype of `x`."""
        require_reduction(self)
        return _into(self, self.x.shape, self.x.dtype)


class AllGather(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=464):
    """Return the `size` ranks' `x`, one behind the other along axis 0, on each of them."""

    dtypes: ClassVar = ALL
    x: AccelRef
    size: int
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a shape whose first extent is `size` times that of `x`."""
        return _into(self, joined(self, self.x, self.size), self.x.dtype)


class ReduceScatter(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=465):
    """Return the rank's part, along axis 0, of the reduction of all `size` ranks' `x`."""

    dtypes: ClassVar = REDUCIBLE
    x: AccelRef
    size: int
    _: Options
    op: Reduction = "sum"
    scale: float | None = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a shape whose first extent is a `size`-th of that of `x`."""
        require_reduction(self)
        return _into(self, parted(self, self.x, self.size), self.x.dtype)


class AllToAll(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=466):
    """Send the r-th part of `x` along axis 0 to rank r; return what came, by rank."""

    dtypes: ClassVar = ALL
    x: AccelRef
    size: int
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape and dtype of `x`."""
        parted(self, self.x, self.size)
        return _into(self, self.x.shape, self.x.dtype)


class AllToAllV(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=467):
    """Send `sends[r]` rows of `x` to rank r; return the `receives[r]` that came of each."""

    dtypes: ClassVar = ALL
    x: AccelRef
    sends: tuple[int, ...]
    receives: tuple[int, ...]
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return as many rows as come."""
        rows = _rows(self, self.x)
        if min(self.sends, default=0) < 0 or sum(self.sends) != rows:
            text = f"AllToAllV: sends are {self.sends}, and x has {rows} rows"
            raise InvalidArgument(text)
        return _into(self, (sum(self.receives), *self.x.shape[1:]), self.x.dtype)


class Reduce(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=468):
    """Return the reduction of all ranks' `x`; the others `Give` theirs."""

    dtypes: ClassVar = REDUCIBLE
    x: AccelRef
    _: Options
    op: Reduction = "sum"
    scale: float | None = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape and dtype of `x`."""
        require_reduction(self)
        return _into(self, self.x.shape, self.x.dtype)


class Gather(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=469):
    """Return the `size` ranks' `x`, one behind the other along axis 0; the others `Give` theirs."""

    dtypes: ClassVar = ALL
    x: AccelRef
    size: int
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a shape whose first extent is `size` times that of `x`."""
        return _into(self, joined(self, self.x, self.size), self.x.dtype)


class Scatter(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=470):
    """Send the r-th part of `x` along axis 0 to rank r, which does `Take`; return the own one."""

    dtypes: ClassVar = ALL
    x: AccelRef
    size: int
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a shape whose first extent is a `size`-th of that of `x`."""
        return _into(self, parted(self, self.x, self.size), self.x.dtype)


class Give(Collective[None], frozen=True, array_like=True, eq=False, tag=471):
    """Give `x` to rank `peer`, or, in a broadcast, to all others; answers with nothing."""

    dtypes: ClassVar = ALL
    x: AccelRef
    call: GiveCall
    peer: int
    _: Options
    op: Reduction = "sum"
    scale: float | None = None

    def infer(self) -> None:
        """Refuse words that there are not."""
        if self.call not in get_args(GiveCall):
            raise InvalidArgument(f"Give: call is one of {get_args(GiveCall)}, not {self.call!r}")
        if self.call == "reduce":
            require_reduction(self)


class Take(Collective[AccelRef], frozen=True, array_like=True, eq=False, tag=472):
    """Return an array of this shape and dtype that rank `peer` gives."""

    dtypes: ClassVar = ALL
    call: TakeCall
    peer: int
    shape: tuple[int, ...]
    dtype: str
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return what is announced."""
        if self.call not in get_args(TakeCall):
            raise InvalidArgument(f"Take: call is one of {get_args(TakeCall)}, not {self.call!r}")
        return _into(self, self.shape, self.dtype)


class Barrier(Collective[None], frozen=True, array_like=True, eq=False, tag=473):
    """Wait until all ranks are here."""

    dtypes: ClassVar = frozenset({""})


def require_reduction(message: Any) -> None:
    """Refuse a word that names no reduction, and a factor that the dtype does not have."""
    name, op, scale = type(message).__name__, message.op, message.scale
    if op not in get_args(Reduction):
        raise InvalidArgument(f"{name}: op is one of {get_args(Reduction)}, not {op!r}")
    dtype = message.x.dtype
    if scale is not None and dtype.startswith(("int", "uint")) and scale != int(scale):
        raise InvalidArgument(f"{name}: scale is {scale:g}, and x is {dtype}: give a whole number")


def joined(message: Operation[Any], x: AccelRef, size: int) -> tuple[int, ...]:
    """Return the shape of `size` such arrays one behind the other."""
    return _rows(message, x) * size, *x.shape[1:]


def parted(message: Operation[Any], x: AccelRef, size: int) -> tuple[int, ...]:
    """Return the shape of a `size`-th of an array along axis 0.

    Raises:
        InvalidArgument: it has no equal parts.
    """
    rows = _rows(message, x)
    if size < 1 or rows % size:
        name = type(message).__name__
        raise InvalidArgument(f"{name}: x has {rows} rows, which {size} ranks cannot share equally")
    return rows // size, *x.shape[1:]


def _rows(message: Operation[Any], x: AccelRef) -> int:
    if not x.shape:
        name = type(message).__name__
        raise InvalidArgument(f"{name}: x has no axis; it takes an array of one row at least")
    return x.shape[0]


def _into(message: Any, shape: tuple[int, ...], dtype: str) -> Spec:
    spec = Spec(shape, dtype)
    require_out(message, message.out, spec)
    return spec
