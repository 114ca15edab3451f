"""Products as NumPy's `@` has them: vectors, matrices and stacks of them, of any dtypes.

What BLAS has goes there. The rest, as integers, mixed dtypes and stacks that broadcast, is a
message of its own.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand, binary, device_among, side
from accel_lab.libraries.array.message import ArrayMessage, axis_of
from accel_lab.libraries.authoring.operand import describe, plain, require_out, result
from accel_lab.libraries.authoring.promotion import promote
from accel_lab.libraries.authoring.shape import ints
from accel_lab.libraries.blas import library as blas

__all__ = ["Matmul", "kron", "matmul", "outer", "tensordot"]

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


def outer(a: Operand, b: Operand) -> AccelRef:
    """Return the product of each element of `a` with each of `b`, both in C order; does not block.

    One may be a NumPy array, which is uploaded.
    """
    left, right = _refs(a, b)
    return binary("multiply", left.reshape((-1, 1)), right.reshape((1, -1)))


def tensordot(a: Operand, b: Operand, axes: Any = 2) -> AccelRef:
    """Return the sums of products over axes of `a` and `b`; does not block.

    `axes` is how many: the last of `a` and the first of `b`; or those of `a` and those of `b`. The
    result has the other axes of `a`, then those of `b`.

    Raises:
        InvalidArgument: there are no such axes, or their extents differ.
    """
    left, right = _refs(a, b)
    one, other = _summed(left, right, axes)
    extents = [left.shape[at] for at in one]
    if extents != [right.shape[at] for at in other]:
        text = f"tensordot: axes {one} of a {describe(left)} and {other} of b {describe(right)}"
        raise InvalidArgument(f"{text} differ in extent")
    rows = [at for at in range(left.ndim) if at not in one]
    columns = [at for at in range(right.ndim) if at not in other]
    m, n = [left.shape[at] for at in rows], [right.shape[at] for at in columns]
    k = math.prod(extents)
    product = matmul(
        left.transpose([*rows, *one]).reshape((math.prod(m), k)),
        right.transpose([*other, *columns]).reshape((k, math.prod(n))),
    )
    return product.reshape((*m, *n))


def kron(a: Operand, b: Operand) -> AccelRef:
    """Return the Kronecker product: `b` scaled by each element of `a`, as blocks; does not block.

    One may be a NumPy array, which is uploaded.
    """
    left, right = _refs(a, b)
    ndim = max(left.ndim, right.ndim)
    outside = (1,) * (ndim - left.ndim) + left.shape
    inside = (1,) * (ndim - right.ndim) + right.shape
    blocks = binary(
        "multiply",
        left.reshape(tuple([n for extent in outside for n in (extent, 1)])),
        right.reshape(tuple([n for extent in inside for n in (1, extent)])),
    )
    return blocks.reshape(tuple([n * k for n, k in zip(outside, inside, strict=True)]))


def _refs(a: Operand, b: Operand) -> tuple[AccelRef, AccelRef]:
    device = device_among(a, b)
    one, other = (x if isinstance(x, AccelRef) else device.put(np.asarray(x)) for x in (a, b))
    return one, other


def _summed(a: AccelRef, b: AccelRef, axes: Any) -> tuple[list[int], list[int]]:
    """Return the axes of each that are summed over, counted from 0."""
    try:
        of_a, of_b = axes
    except TypeError:
        count = plain(axes)
        if type(count) is not int or not 0 <= count <= min(a.ndim, b.ndim):
            text = f"tensordot: a {describe(a)} and b {describe(b)} have no {axes!r} axes to sum"
            raise InvalidArgument(text) from None
        of_a, of_b = range(a.ndim - count, a.ndim), range(count)
    one = [axis_of("tensordot", a, at) for at in ints("tensordot: axes", of_a)]
    other = [axis_of("tensordot", b, at) for at in ints("tensordot: axes", of_b)]
    if len({*one}) != len(one) or len({*other}) != len(other):
        raise InvalidArgument(f"tensordot: an axis is twice in {axes!r}")
    return one, other


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
