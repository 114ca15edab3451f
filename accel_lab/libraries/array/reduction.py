"""Reductions along axes: sums, extremes, means and where they are."""

from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument, OutOfBounds
from accel_lab.libraries.array.elementwise import require_word
from accel_lab.libraries.array.message import ArrayMessage
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, require_out, result
from accel_lab.libraries.authoring.options import DType, Ints, Options
from accel_lab.libraries.authoring.promotion import reduced

ReduceOp: TypeAlias = Literal[
    "sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "std", "var"
]

REDUCE: frozenset[str] = frozenset(get_args(ReduceOp))
PLACES = frozenset({"argmax", "argmin"})
SPREADS = frozenset({"std", "var"})
_TYPED = frozenset({"sum", "prod", "mean"}) | SPREADS
_NEVER_EMPTY = frozenset({"max", "min"}) | PLACES


class Reduce(ArrayMessage, frozen=True, tag=110):
    """Reduce `x` along axes by NumPy's function `op`; None is all of them.

    bfloat16 and float8 are reduced in float32 and rounded once. `keepdims` leaves reduced axes in
    with one element. `ddof` is for `std` and `var`, which divide by n - ddof. `dtype` is that in
    which `sum`, `prod`, `mean`, `std` and `var` are computed, without it NumPy's choice.
    """

    shapes: ClassVar = "(...)->?"
    op: ReduceOp
    x: AccelRef
    axis: Ints | None = None
    _: Options
    keepdims: bool = False
    ddof: int = 0
    dtype: DType | None = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape that is left and NumPy's dtype for the function."""
        require_word(self, self.op, REDUCE)
        axes, shape = self.axes(), self.x.shape
        if self.op in _NEVER_EMPTY and any(shape[axis] == 0 for axis in axes):
            raise InvalidArgument(f"Reduce: {describe(self.x)} has no {self.op}: it is empty")
        if self.keepdims:
            left = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
        else:
            left = tuple(n for axis, n in enumerate(shape) if axis not in axes)
        spec = result(self, left, self.made_dtype())
        require_out(self, self.out, spec, self.x)
        return spec

    def axes(self) -> tuple[int, ...]:
        """Return the axes to be reduced, counted from 0.

        Raises:
            InvalidArgument: there are no such axes, or too many of them.
        """
        ndim, given = self.x.ndim, cast("tuple[int, ...] | None", self.axis)
        if given is None:
            return tuple(range(ndim))
        axes = tuple(axis + ndim if axis < 0 else axis for axis in given)
        if any(not 0 <= axis < ndim for axis in axes) or len(set(axes)) != len(axes):
            raise OutOfBounds(
                f"Reduce: axis {_shown(given)} is none of x {describe(self.x)}, or is there twice"
            )
        if self.op in PLACES and len(axes) != 1:
            raise InvalidArgument(f"Reduce: {self.op} takes one axis or None, not {given!r}")
        return axes

    def made_dtype(self) -> str:
        """Return the dtype that NumPy's function has for it.

        Raises:
            InvalidArgument: there is none, or it is no such one that was asked for.
        """
        source, asked = self.x.dtype, self.dtype or ""
        if asked and self.op not in _TYPED:
            raise InvalidArgument(f"Reduce: {self.op} takes no dtype; cast the result")
        if asked and is_complex(source) and not is_complex(asked):
            raise InvalidArgument(f"Reduce: {self.op} of {source} is not {asked}, but complex")
        try:
            return reduced(self.op, source, asked)
        except TypeError:
            text = f"Reduce: there is no {self.op} of {source} in {asked or source}; cast first"
            raise InvalidArgument(text) from None


reduce = function(Reduce)


def _shown(axis: tuple[Any, ...]) -> Any:
    return axis[0] if len(axis) == 1 else axis
