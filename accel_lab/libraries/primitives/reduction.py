"""One number of many: reductions of a vector and of its segments."""

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.authoring.operand import coefficient, describe, kind, result
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shaped import same
from accel_lab.libraries.primitives.message import (
    Primitive,
    judge_offsets,
    require_offsets,
    require_vector,
)
from accel_lab.libraries.primitives.operators import ASSOCIATIVE, Operator, require_operator

Extremum: TypeAlias = Literal["argmin", "argmax"]
_HAVE_IDENTITY = frozenset(ASSOCIATIVE) - {"min", "max"}


class Reduce(Primitive[AccelRef], frozen=True, tag=540):
    """Combine all elements of a vector by an associative operator, beginning with `init`.

    `op` is "sum", "prod", "min", "max", "bit_and", "bit_or", "bit_xor", or the name of a function
    `T op(T, T)` of the CUDA C++ `source`. It is computed in the dtype of `x`, where integers wrap;
    sums and products of float16 are formed in float32. Of no element the result is `init`, and
    without one the identity of `op`, if it has one. "min" and "max" are NaN where an element is.
    """

    shapes: ClassVar = "(n)->()"
    x: AccelRef
    op: str = "sum"
    _: Options
    source: str = ""
    init: Factor | None = None

    def check(self) -> None:
        """Refuse an operator that is none, and nothing without a value."""
        require_operator(self, "op", ASSOCIATIVE, self.x.dtype)
        if not self.x.size and self.init is None and not has_identity(self.operator):
            text = f"x is {describe(self.x)}, and {self.op} of nothing needs init"
            raise InvalidArgument(f"{kind(self)}: {text}")

    @property
    def operator(self) -> Operator:
        """The operator."""
        return Operator(self.op, self.source)


class Extreme(NamedTuple):
    """The first least or greatest element.

    Attributes:
        place: where it is, int64.
        value: what it is.
    """

    place: AccelRef
    value: AccelRef


class ArgReduce(Primitive[Extreme], frozen=True, tag=541):
    """Find the first least ("argmin") or greatest ("argmax") element: its place and its value.

    The first NaN counts as both, as in NumPy. A vector without an element is refused.
    """

    shapes: ClassVar = "(n)->(),()"
    results: ClassVar = ("int64", same)
    x: AccelRef
    op: Extremum = "argmin"

    def check(self) -> None:
        """Refuse another word, and nothing."""
        if self.op not in ("argmin", "argmax"):
            raise InvalidArgument(
                f"{kind(self)}: op is {self.op!r}; it may be 'argmin' or 'argmax'"
            )
        if not self.x.size:
            text = f"x is {describe(self.x)}, and is to have at least one element"
            raise InvalidArgument(f"{kind(self)}: {text}")


class SegmentedReduce(Primitive[AccelRef], frozen=True, tag=542):
    """Combine the elements of each segment of a vector as `Reduce` does.

    Segment i is x[offsets[i] : offsets[i + 1]]. `offsets`, int32 or int64, go from 0 to the length
    of `x`; the device refuses others. An empty segment gives `init`, or else the identity of `op`:
    "min" and "max" have the largest and the smallest number of the dtype, and a function of
    `source` needs `init`.
    """

    x: AccelRef
    offsets: AccelRef
    op: str = "sum"
    _: Options
    source: str = ""
    init: Factor | None = None

    def infer(self) -> Spec:
        """Return a number for each segment."""
        x = require_vector(self, "x")
        segments = require_offsets(self, self.offsets)
        require_operator(self, "op", ASSOCIATIVE, x.dtype)
        require_init(self, x.dtype)
        if self.source and self.init is None:
            text = "a segment may be empty, and a function of source needs init"
            raise InvalidArgument(f"{kind(self)}: {text}")
        return result(self, (segments,), x.dtype)

    def judge(self, wrong: Any) -> AccelError | None:
        """Refuse offsets that are none of `x`."""
        return judge_offsets(self, wrong, self.x.shape[0])

    @property
    def operator(self) -> Operator:
        """The operator."""
        return Operator(self.op, self.source)


def has_identity(op: Operator) -> bool:
    """Whether a reduction of nothing has a value of its own."""
    return not op.source and op.name in _HAVE_IDENTITY


def require_init(message: Any, dtype: str) -> None:
    """Refuse a number that the dtype does not have.

    Raises:
        InvalidArgument: it does not.
    """
    if message.init is not None:
        coefficient(message, "init", message.init, dtype)
