"""Sums and products up to each element, and differences between neighbours."""

from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand, binary, require_word
from accel_lab.libraries.array.joining import concatenate
from accel_lab.libraries.array.message import NUMPYS, ArrayMessage, axis_of
from accel_lab.libraries.array.shaping import broadcast_to
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, plain, require_out
from accel_lab.libraries.authoring.options import DType, Options
from accel_lab.libraries.authoring.promotion import reduced

__all__ = ["Scan", "cumprod", "cumsum", "diff", "scan"]

ScanOp: TypeAlias = Literal["cumsum", "cumprod"]
SCANS: frozenset[str] = frozenset(get_args(ScanOp))


class Scan(ArrayMessage, frozen=True, tag=117):
    """Take the sum or product, by NumPy's `op`, of the elements up to each one along an axis.

    If `axis` is None it is of all in C order. `dtype` is that in which they are computed, without
    it NumPy's choice: 64 bits of bool and small integers.
    """

    dtypes: ClassVar = NUMPYS
    shapes: ClassVar = "(...)->?"
    op: ScanOp
    x: AccelRef
    axis: int | None = None
    _: Options
    dtype: DType | None = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`, or one axis, and NumPy's dtype for the function."""
        require_word(self, self.op, SCANS)
        x = self.x
        if self.axis is None:
            shape: tuple[int, ...] = (x.size,)
        else:
            axis_of("Scan", x, self.axis)
            shape = x.shape
        spec = Spec(shape, self.made_dtype())
        require_out(self, self.out, spec, x)
        return spec

    def made_dtype(self) -> str:
        """Return the dtype that NumPy's function has for it.

        Raises:
            InvalidArgument: there is none, or it is no such one that was asked for.
        """
        source, asked = self.x.dtype, self.dtype or ""
        if asked and asked not in NUMPYS:
            raise InvalidArgument(f"Scan: {self.op} is not computed in {asked}; cast the result")
        if is_complex(source) and asked and not is_complex(asked):
            raise InvalidArgument(f"Scan: {self.op} of {source} is not {asked}, but complex")
        return reduced(self.op, source, asked)


scan = function(Scan)


def cumsum(
    x: AccelRef, axis: int | None = None, dtype: object = None, out: AccelRef | None = None
) -> AccelRef:
    """Return the sums of the elements up to each one, as `Scan` says; does not block."""
    return scan("cumsum", x, axis, dtype=dtype, out=out)


def cumprod(
    x: AccelRef, axis: int | None = None, dtype: object = None, out: AccelRef | None = None
) -> AccelRef:
    """Return the products of the elements up to each one, as `Scan` says; does not block."""
    return scan("cumprod", x, axis, dtype=dtype, out=out)


def diff(
    x: AccelRef,
    n: int = 1,
    axis: int = -1,
    prepend: Operand | None = None,
    append: Operand | None = None,
) -> AccelRef:
    """Return the differences of neighbours along an axis, `n` times over; does not block.

    Of bool it is whether they differ. `prepend` and `append` are arrays, or numbers, that stand
    before and behind `x`.

    Raises:
        InvalidArgument: there is no such axis, or `n` is less than 0.
    """
    device_of(x)
    times, at = plain(n), axis_of("diff", x, plain(axis))
    if type(times) is not int or times < 0:
        raise InvalidArgument(f"diff: n must be an integer from 0, not {n!r}, of x {describe(x)}")
    if times == 0:
        return x
    parts = [_beside(x, prepend, at), x, _beside(x, append, at)]
    given = [part for part in parts if part is not None]
    made = concatenate(given, at) if len(given) > 1 else x
    whole = (slice(None),) * at
    op: Any = "not_equal" if made.dtype == "bool" else "subtract"
    for _ in range(times):
        made = binary(op, made[(*whole, slice(1, None))], made[(*whole, slice(None, -1))])
    return made


def _beside(x: AccelRef, value: Operand | None, axis: int) -> AccelRef | None:
    """Return what stands beside `x`: a number is one element along the axis."""
    if value is None:
        return None
    ref = value if isinstance(value, AccelRef) else x.device.put(np.asarray(value))
    if ref.ndim:
        return ref
    return broadcast_to(ref, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
