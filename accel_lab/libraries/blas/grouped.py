"""Many products of different shapes as one message."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import ClassVar

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import (
    Scalar,
    describe,
    element,
    one_dtype,
    plain,
    result,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.blas.message import BlasMessage, Trans, require_options


class GemmGrouped(BlasMessage, frozen=True, tag=167):
    """Multiply pairs of matrices of any shapes: alpha op(a[i]) @ op(b[i]), one behind the other.

    The answer has one axis: the elements of the first product in C order, then those of the next.
    `trans_a` and `trans_b` are as of `Gemm`, for all pairs.
    """

    uncaptured: ClassVar = "its table of addresses is written by the host"
    a: tuple[AccelRef, ...]
    b: tuple[AccelRef, ...]
    _: Options
    alpha: Factor = 1.0
    trans_a: Trans = "n"
    trans_b: Trans = "n"

    def infer(self) -> Spec:
        """Return the extent of all products together."""
        extent = sum(map(prod, self.shapes_made()))
        element(self, "alpha", self.alpha, self.a[0].dtype)
        return result(self, (extent,), self.a[0].dtype)

    def shapes_made(self) -> list[tuple[int, int]]:
        """Return the shape of each product.

        Raises:
            InvalidArgument: the matrices do not go in pairs, or those of one do not fit.
        """
        if not self.a or len(self.a) != len(self.b):
            text = f"a has {len(self.a)} matrices and b has {len(self.b)}"
            raise InvalidArgument(f"GemmGrouped: {text}; they go in pairs, one at least")
        require_options(self, "trans_a", "trans_b")
        one_dtype(self, *self.a, *self.b)
        made = []
        for at, pair in enumerate(zip(self.a, self.b, strict=True)):
            (m, k), (inner, n) = (
                _turned(ref.shape, trans)
                for ref, trans in zip(pair, (self.trans_a, self.trans_b), strict=True)
            )
            if k != inner or k < 0:
                a, b = map(describe, pair)
                text = f"a[{at}] is {a} and b[{at}] is {b}; it takes trans_a(m,k),trans_b(k,n)"
                raise InvalidArgument(f"GemmGrouped: {text}")
            made.append((m, n))
        return made


def _turned(shape: tuple[int, ...], trans: Trans) -> tuple[int, int]:
    """Return the shape of op of a matrix; no extents of a matrix where it is none."""
    if len(shape) != len("mn"):
        return -1, -1
    rows, columns = shape
    return (rows, columns) if trans == "n" else (columns, rows)


def gemm_grouped(
    a: Sequence[AccelRef],
    b: Sequence[AccelRef],
    *,
    alpha: Scalar = 1.0,
    trans_a: Trans = "n",
    trans_b: Trans = "n",
) -> list[AccelRef]:
    """Return alpha op(a[i]) @ op(b[i]) of pairs of matrices, as `GemmGrouped`; does not block.

    The products are views of one buffer. It is the pointer-batched product, too, of matrices of
    one shape that lie anywhere.

    Raises:
        InvalidArgument: the matrices do not go in pairs, those of one do not fit, or they have not
            one dtype.
    """
    message = GemmGrouped(tuple(a), tuple(b), alpha=plain(alpha), trans_a=trans_a, trans_b=trans_b)
    shapes = message.shapes_made()
    made = device_of(message.a[0]).ask(message)
    ends = list(accumulate(map(prod, shapes)))
    return [
        made[end - prod(shape) : end].reshape(shape)
        for end, shape in zip(ends, shapes, strict=True)
    ]
