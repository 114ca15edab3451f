"""Products of vectors and matrices."""

from collections.abc import Sequence

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array import library as array

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: AccelRef, x2: AccelRef, /) -> AccelRef:
    """Return the product of matrices, or of stacks of them that broadcast; does not block."""
    return array.matmul(x1, x2)


def matrix_transpose(x: AccelRef, /) -> AccelRef:
    """Return a view with the last two axes in each other's place; does not block."""
    return array.swapaxes(x, -1, -2)


def tensordot(
    x1: AccelRef,
    x2: AccelRef,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> AccelRef:
    """Return the sums of products over axes of both, as `array.tensordot`; does not block."""
    return array.tensordot(x1, x2, axes)


def vecdot(x1: AccelRef, x2: AccelRef, /, *, axis: int = -1) -> AccelRef:
    """Return the sums of `conj(x1) * x2` along an axis, the others broadcast; does not block."""
    left, right = array.moveaxis(array.conjugate(x1), axis, -1), array.moveaxis(x2, axis, -1)
    product = array.matmul(left[..., None, :], right[..., None])
    return array.squeeze(product, (-1, -2))
