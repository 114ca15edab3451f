"""Matrices with at most two of each four elements of a row: 2:4 structured, half as large."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.operand import describe, kind, one_dtype, result
from accel_lab.libraries.authoring.shaped import R, Shaped
from accel_lab.libraries.sparse.matrix import Shape

OF = 4
"""Of so many elements next to each other in a row two are kept."""
KEPT = 2


class OfFours(Shaped[R], frozen=True, array_like=True, eq=False):
    """A message of a matrix whose rows are fours."""

    library: ClassVar[str] = "sparse"
    dtypes: ClassVar = REAL_FLOATS
    x: AccelRef

    def require_fours(self) -> Shape:
        """Return its shape.

        Raises:
            InvalidArgument: it is no matrix, or its rows are not of fours.
        """
        if self.x.ndim != len(("rows", "columns")) or self.x.shape[1] % OF:
            text = f"{kind(self)}: x is {describe(self.x)}, and is to be a matrix whose rows are"
            raise InvalidArgument(f"{text} a multiple of 4 long")
        rows, columns = self.x.shape
        return rows, columns


class Prune24(OfFours[AccelRef], frozen=True, tag=360):
    """Keep the two of each four elements of a row that are largest in magnitude, zero the others.

    Of equal ones the first are kept. NaN is larger than any number.
    """

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        return Spec(self.require_fours(), self.x.dtype)


class Check24(OfFours[AccelRef], frozen=True, tag=361):
    """Tell whether each four elements of a row have at most two that are not zero: one bool."""

    def infer(self) -> Spec:
        """Return a number."""
        self.require_fours()
        return Spec((), "bool")


class Halves(NamedTuple):
    """What is kept of a 2:4 matrix.

    Attributes:
        values: two of each four, (m, n / 2).
        places: which of the four each is, uint8 from 0 to 3, in order.
    """

    values: AccelRef
    places: AccelRef


class Compress24(OfFours[Halves], frozen=True, tag=362):
    """Keep two of each four elements of a row, and which they are.

    Where more than two are not zero it fails with `InvalidArgument`: `Prune24` first.
    """

    def infer(self) -> tuple[Spec, Spec]:
        """Return half as many columns."""
        rows, columns = self.require_fours()
        shape = rows, columns * KEPT // OF
        return Spec(shape, self.x.dtype), Spec(shape, "uint8")

    def judge(self, status: Any) -> AccelError | None:
        """Refuse a row with three of four."""
        row = int(status[0])
        if row < 0:
            return None
        text = f"Compress24: row {row} has more than two of four that are not zero"
        return InvalidArgument(f"{text}; prune24(x) first")


class Matmul24(Shaped[AccelRef], frozen=True, array_like=True, eq=False, tag=363):
    """Multiply a compressed 2:4 matrix (m, k) and a dense one (k, n).

    Sums of narrow floats are formed in float32.
    """

    library: ClassVar[str] = "sparse"
    dtypes: ClassVar = REAL_FLOATS
    values: AccelRef
    places: AccelRef
    b: AccelRef

    def infer(self) -> Spec:
        """Return the rows of the one and the columns of the other."""
        values, places, b = self.values, self.places, self.b
        dtype = one_dtype(self, values, b)
        two = len(("rows", "columns"))
        if values.ndim != two or values.shape[1] % KEPT:
            text = f"Matmul24: values are {describe(values)}, and are to be what Compress24 makes"
            raise InvalidArgument(text)
        if places.dtype != "uint8" or places.shape != values.shape:
            text = f"Matmul24: places are {describe(places)}, and are to be one uint8 for each"
            raise InvalidArgument(f"{text} of values {describe(values)}")
        inner = values.shape[1] // KEPT * OF
        if b.ndim != two or b.shape[0] != inner:
            text = f"Matmul24: b is {describe(b)}, and is to be a matrix of {inner} rows"
            raise InvalidArgument(f"{text}, as the compressed one has columns")
        return result(self, (values.shape[0], b.shape[1]), dtype)


@dataclass(frozen=True, eq=False)
class Structured:
    """A 2:4 structured matrix on a device: `w @ b`.

    Attributes:
        shape: of the whole matrix.
        values, places: what is kept of it, as `Halves`.
    """

    shape: Shape
    values: AccelRef
    places: AccelRef
    __array_ufunc__ = None  # NumPy's arrays leave `array @ w` to it, which refuses

    def __matmul__(self, b: AccelRef) -> AccelRef:
        """Multiply by a dense matrix, as `Matmul24`."""
        return matmul24(self, b)


def prune24(x: AccelRef) -> AccelRef:
    """Keep the largest two of each four, as `Prune24`; does not block.

    Raises:
        InvalidArgument: `x` is no matrix whose rows are fours.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return device_of(x).ask(Prune24(x))


def check24(x: AccelRef) -> AccelRef:
    """Tell whether at most two of each four are not zero, as `Check24`; does not block.

    Raises:
        InvalidArgument: `x` is no matrix whose rows are fours.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return device_of(x).ask(Check24(x))


def compress24(x: AccelRef) -> Structured:
    """Keep two of each four, as `Compress24`; does not block.

    Raises:
        InvalidArgument: `x` is no matrix whose rows are fours.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    device = device_of(x)
    rows, columns = Compress24(x).require_fours()
    return Structured((rows, columns), *device.ask(Compress24(x)))


def matmul24(a: Structured, b: AccelRef) -> AccelRef:
    """Multiply a 2:4 matrix and a dense one, as `Matmul24`; does not block.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    if not isinstance(a, Structured):
        text = f"Matmul24: a is {type(a).__name__}, and is to be what compress24 makes"
        raise InvalidArgument(text)
    return device_of(a.values).ask(Matmul24(a.values, a.places, b))
