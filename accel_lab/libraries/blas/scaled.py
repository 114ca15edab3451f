"""Products and sums whose factors are on the device, which no number has to be fetched for.

A factor is a 0-d buffer of the operands' dtype. Nobody knows it when the message is sent: where an
alpha turns out 0, infinities and NaNs of the product may count all the same.
"""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.compute import Compute, require_compute
from accel_lab.libraries.authoring.operand import describe, kind
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.blas.message import BlasMessage, Trans


class ProductBy(BlasMessage, frozen=True):
    """The fields of `GemmBy` and `GemmStridedBatchedBy`."""

    in_place: ClassVar = ("c",)
    a: AccelRef
    b: AccelRef
    alpha: AccelRef
    c: AccelRef | None = None
    beta: AccelRef | None = None
    _: Options
    trans_a: Trans = "n"
    trans_b: Trans = "n"
    out: AccelRef | None = None
    compute: Compute = ""

    def check(self) -> None:
        """Refuse what is added without its factor, a factor of nothing, an unknown precision."""
        require_compute(self)
        _require_both(self, "c", self.c, self.beta)


class GemmBy(ProductBy, frozen=True, tag=168):
    """Multiply matrices as `Gemm`, by an `alpha` and a `beta` that are 0-d buffers.

    `c` and `beta` come together, and `c` does not count where `beta` is 0. `gemm` sends it if a
    factor is a buffer; a number beside that becomes one.
    """

    shapes: ClassVar = "trans_a(m,k),trans_b(k,n),(),(m,n)?,()?->(m,n)"


class GemmStridedBatchedBy(ProductBy, frozen=True, tag=169):
    """Multiply stacks of matrices as `GemmStridedBatched`, by factors that are 0-d buffers.

    One `alpha` and one `beta` are for the whole stack.
    """

    shapes: ClassVar = "trans_a(...?,m,k),trans_b(...?,k,n),(),(...?,m,n)?,()?->(...,m,n)"


class GemvBy(BlasMessage, frozen=True, tag=170):
    """Multiply a matrix and a vector as `Gemv`, by an `alpha` and a `beta` that are 0-d buffers."""

    shapes: ClassVar = "trans(m,n),(n),(),(m)?,()?->(m)"
    in_place: ClassVar = ("y",)
    a: AccelRef
    x: AccelRef
    alpha: AccelRef
    y: AccelRef | None = None
    beta: AccelRef | None = None
    _: Options
    trans: Trans = "n"
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse what is added without its factor, and a factor of nothing."""
        _require_both(self, "y", self.y, self.beta)


class AxpyBy(BlasMessage, frozen=True, tag=171):
    """Add a multiple as `Axpy`: alpha x + y, by an `alpha` that is a 0-d buffer."""

    shapes: ClassVar = "(...),(...),()->(...)"
    in_place: ClassVar = ("x", "y")
    x: AccelRef
    y: AccelRef
    alpha: AccelRef
    _: Options
    out: AccelRef | None = None


class ScalBy(BlasMessage, frozen=True, tag=172):
    """Scale as `Scal`: alpha x, by an `alpha` that is a 0-d buffer."""

    shapes: ClassVar = "(...),()->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    alpha: AccelRef
    _: Options
    out: AccelRef | None = None


def _require_both(
    message: BlasMessage, name: str, added: AccelRef | None, beta: AccelRef | None
) -> None:
    if (added is None) != (beta is None):
        there, lacking = (name, "beta") if beta is None else ("beta", name)
        one = added if beta is None else beta
        assert one is not None
        text = f"{there} is {describe(one)}, and there is no {lacking}; they come together"
        raise InvalidArgument(f"{kind(message)}: {text}")
