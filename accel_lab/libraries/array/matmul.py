"""Products as NumPy's `@` has them: vectors, matrices and stacks of them, of any dtypes.

What BLAS has goes there. The rest, as integers, mixed dtypes and stacks that broadcast, is a
message of its own.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand, device_among, side
from accel_lab.libraries.array.message import ArrayMessage
from accel_lab.libraries.authoring.operand import describe, require_out, result
from accel_lab.libraries.authoring.promotion import promote
from accel_lab.libraries.blas import library as blas

_BLAS = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
"""The dtypes of which every backend has BLAS."""


MATRIX = 2  # axes
_MESSAGES: dict[tuple[int, int], Callable[[AccelRef, AccelRef], Operation[AccelRef]]] = {
    (2, 2): blas.Gemm,
    (2, 1): blas.Gemv,
    (1, 2): lambda a, b: blas.Gemv(b, a, trans="t"),
    (1, 1): blas.Dot,
}
"""What BLAS has, by the operands' numbers of axes."""


class Matmul(ArrayMessage, frozen=True, tag=111):
    """Multiply matrices (..., m, k) and (..., k, n) whose leading axes broadcast, as `@` does.

    A vector (k,) is a row on the left and a column on the right. Equal dtypes keep theirs, others
    promote as NumPy's; integers wrap. Narrow floats are computed in float32 and rounded once.
    """

    shapes: ClassVar = "(...,m,k),(...,k,n)->(...,m,n)"
    broadcasts: ClassVar = True
    a: AccelRef
    b: AccelRef
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the product's shape and dtype."""
        a, b = self.a, self.b
        if not a.shape or not b.shape:
            raise self._refused("a number is no matrix; multiply with *")
        left = a.shape if a.ndim > 1 else (1, *a.shape)
        right = b.shape if b.ndim > 1 else (*b.shape, 1)
        if left[-1] != right[-2]:
            raise self._refused(f"inner extents {left[-1]} and {right[-2]} differ")
        try:
            batch = np.broadcast_shapes(left[:-2], right[:-2])
        except ValueError:
            raise self._refused("the leading axes do not broadcast") from None
        rows = left[-2:-1] if a.ndim > 1 else ()
        columns = right[-1:] if b.ndim > 1 else ()
        same = a.dtype == b.dtype
        dtype = a.dtype if same else promote(self, "matmul", a.dtype, b.dtype)
        spec = result(self, (*batch, *rows, *columns), dtype)
        require_out(self, self.out, spec, a, b)
        return spec

    def _refused(self, why: str) -> InvalidArgument:
        return InvalidArgument(f"Matmul: {why}; a is {describe(self.a)}, b is {describe(self.b)}")


def matmul(a: Operand, b: Operand) -> AccelRef:
    """Return a @ b as NumPy shapes it; does not block.

    Floats of one dtype go to BLAS as `Gemm`, `Gemv`, `Dot` or `GemmStridedBatched`, all else as
    `Matmul`. One operand may be a NumPy array, which is uploaded.

    Raises:
        InvalidArgument: the operands do not fit, or are on two devices.
    """
    device = device_among(a, b)
    left, right = side(device, a), side(device, b)
    if not isinstance(left, AccelRef) or not isinstance(right, AccelRef):
        raise InvalidArgument("Matmul: a number is no matrix; multiply with *")
    # A shape that only the context knows yet is none to choose by.
    if left.known and right.known and left.dtype == right.dtype and left.dtype in _BLAS:
        message = _of_blas(left, right)
        if message is not None:
            return device.ask(message)
    return device.ask(Matmul(left, right))


def _of_blas(a: AccelRef, b: AccelRef) -> Operation[AccelRef] | None:
    """Return BLAS's message for a product, None where it has none for these shapes."""
    m, n = a.shape, b.shape
    if (m[-1:] or (-1,)) != (n[-2:-1] or n[-1:]):
        return None  # `Matmul` says what is wrong, of operands of any number of axes
    ranks = len(m), len(n)
    if ranks in _MESSAGES:
        return _MESSAGES[ranks](a, b)
    if min(ranks) >= MATRIX and (m[:-2] == n[:-2] or MATRIX in ranks):
        return blas.GemmStridedBatched(a, b)
    return None
