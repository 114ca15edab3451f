"""Reductions along axes: sums, extremes, means and where they are."""

from typing import Any, Literal, TypeAlias, get_args

from accel_lab.compute.arrays.dtypes import canonical, is_complex
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import require_word
from accel_lab.libraries.array.message import ArrayMessage
from accel_lab.libraries.authoring.operand import describe, flag, plain, require_out, result
from accel_lab.libraries.authoring.promotion import reduced
from accel_lab.libraries.authoring.shape import Integers, ints

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
    which `sum`, `prod`, `mean`, `std` and `var` are computed, empty for NumPy's choice.
    """

    op: ReduceOp
    x: AccelRef
    axis: tuple[int, ...] | None = None
    keepdims: bool = False
    ddof: int = 0
    dtype: str = ""
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
        spec = result(self, left, self._dtype())
        require_out(self, self.out, spec, self.x)
        return spec

    def axes(self) -> tuple[int, ...]:
        """Return the axes to be reduced, counted from 0.

        Raises:
            InvalidArgument: there are no such axes, or too many of them.
        """
        ndim = self.x.ndim
        if self.axis is None:
            return tuple(range(ndim))
        axes = tuple(axis + ndim if axis < 0 else axis for axis in self.axis)
        if any(not 0 <= axis < ndim for axis in axes) or len(set(axes)) != len(axes):
            raise InvalidArgument(
                f"Reduce: axis {_shown(self.axis)} is none of x {describe(self.x)}, or is there "
                "twice"
            )
        if self.op in PLACES and len(axes) != 1:
            raise InvalidArgument(f"Reduce: {self.op} takes one axis or None, not {self.axis!r}")
        return axes

    def _dtype(self) -> str:
        source, asked = self.x.dtype, self.dtype
        if asked and self.op not in _TYPED:
            raise InvalidArgument(f"Reduce: {self.op} takes no dtype; cast the result")
        if asked and is_complex(source) and not is_complex(asked):
            raise InvalidArgument(f"Reduce: {self.op} of {source} is not {asked}, but complex")
        try:
            return reduced(self.op, source, asked)
        except TypeError:
            text = f"Reduce: there is no {self.op} of {source} in {asked or source}; cast first"
            raise InvalidArgument(text) from None


def reduce(
    op: ReduceOp,
    x: AccelRef,
    axis: Integers | None = None,
    *,
    keepdims: bool = False,
    ddof: int = 0,
    dtype: object = None,
    out: AccelRef | None = None,
) -> AccelRef:
    """Reduce `x` along an axis, several, or all of them, as `Reduce` says; does not block.

    Raises:
        InvalidArgument: an axis or option does not fit, or there is nothing to reduce.
    """
    along = None if axis is None else ints("axis", axis)
    asked = "" if dtype is None else canonical(dtype)
    return device_of(x).ask(
        Reduce(op, x, along, flag("keepdims", keepdims), plain(ddof), asked, out)
    )


def _shown(axis: tuple[Any, ...]) -> Any:
    return axis[0] if len(axis) == 1 else axis
