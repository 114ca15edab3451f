"""Linear algebra in BLAS's three levels: cuBLAS on `cuda`, NumPy and SciPy on `host`.

A message makes a new buffer unless `out` names one. Operands are row-major as NumPy's and may be
views of any strides. As in BLAS, `c` and `y` are not read where `beta` is 0. Narrow floats
(float16, bfloat16, float8) are computed in float32 and rounded once; integers wrap; bool is the
semiring of `or` and `and`. A factor is any number; on the wire a complex one is the list of its two
parts. Where a function takes a 0-d buffer for it, nothing waits for that: `GemmBy` is sent then.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

from itertools import accumulate
from math import prod
from typing import ClassVar

from accel_lab.actor.reply import Reply
from accel_lab.compute.arrays.dtypes import real_of
from accel_lab.compute.device import device_of
from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.compute import Compute as Compute
from accel_lab.libraries.authoring.compute import require_compute
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.dtype_sets import INEXACT
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import array_of, describe, element
from accel_lab.libraries.authoring.options import Options, Scale
from accel_lab.libraries.blas.grouped import GemmGrouped as GemmGrouped
from accel_lab.libraries.blas.grouped import gemm_grouped as gemm_grouped
from accel_lab.libraries.blas.level1 import Asum as Asum
from accel_lab.libraries.blas.level1 import Givens as Givens
from accel_lab.libraries.blas.level1 import Iamax as Iamax
from accel_lab.libraries.blas.level1 import Iamin as Iamin
from accel_lab.libraries.blas.level1 import Rot as Rot
from accel_lab.libraries.blas.level1 import Rotated as Rotated
from accel_lab.libraries.blas.level1 import Rotg as Rotg
from accel_lab.libraries.blas.level1 import Swap as Swap
from accel_lab.libraries.blas.level2 import Gbmv as Gbmv
from accel_lab.libraries.blas.level2 import Ger as Ger
from accel_lab.libraries.blas.level2 import Hemv as Hemv
from accel_lab.libraries.blas.level2 import Symv as Symv
from accel_lab.libraries.blas.level2 import Trmv as Trmv
from accel_lab.libraries.blas.level2 import Trsv as Trsv
from accel_lab.libraries.blas.level3 import Dgmm as Dgmm
from accel_lab.libraries.blas.level3 import Geam as Geam
from accel_lab.libraries.blas.level3 import Hemm as Hemm
from accel_lab.libraries.blas.level3 import Herk as Herk
from accel_lab.libraries.blas.level3 import Symm as Symm
from accel_lab.libraries.blas.level3 import Syrk as Syrk
from accel_lab.libraries.blas.level3 import Trmm as Trmm
from accel_lab.libraries.blas.level3 import Trsm as Trsm
from accel_lab.libraries.blas.message import BlasMessage
from accel_lab.libraries.blas.message import Side as Side
from accel_lab.libraries.blas.message import Trans as Trans
from accel_lab.libraries.blas.message import Uplo as Uplo
from accel_lab.libraries.blas.scaled import AxpyBy as AxpyBy
from accel_lab.libraries.blas.scaled import GemmBy as GemmBy
from accel_lab.libraries.blas.scaled import GemmStridedBatchedBy as GemmStridedBatchedBy
from accel_lab.libraries.blas.scaled import GemvBy as GemvBy
from accel_lab.libraries.blas.scaled import ProductBy as ProductBy
from accel_lab.libraries.blas.scaled import ScalBy as ScalBy


class Product(BlasMessage, frozen=True):
    """The fields of `Gemm` and `GemmStridedBatched`."""

    scaled_by: ClassVar = {"c": "beta"}
    in_place: ClassVar = ("c",)
    a: AccelRef
    b: AccelRef
    c: AccelRef | None = None
    _: Options
    alpha: Scale = 1.0
    beta: Scale | None = None
    trans_a: Trans = "n"
    trans_b: Trans = "n"
    out: AccelRef | None = None
    compute: Compute = ""

    def check(self) -> None:
        """Refuse a precision that there is not."""
        if self.compute != "":
            require_compute(self)


class Gemm(Product, frozen=True, tag=140):
    """Multiply matrices: alpha op(a) @ op(b) + beta c, with op(a) (m, k) and op(b) (k, n).

    `trans_a` and `trans_b` are "n" (as it is), "t" (transposed) or "c" (conjugate-transposed).
    `c` (m, n) and `beta` come together. `out` may be `c`, and must not be `a` or `b`. With an
    alpha of 0 the product is left out, and with a beta of 0 `c`: no infinity or NaN there counts.
    `compute` may be "tf32" for float32 and complex64: `cuda` rounds what it multiplies to eleven
    bits then, and is faster; `host` computes in float32 all the same.
    """

    shapes: ClassVar = "trans_a(m,k),trans_b(k,n),(m,n)?->(m,n)"
    instead: ClassVar = "Gemv takes vectors, GemmStridedBatched stacks of matrices"


class GemmStridedBatched(Product, frozen=True, tag=141):
    """Multiply stacks of matrices: `Gemm` for every index of the leading batch axes.

    op(a) is (..., m, k), op(b) (..., k, n) and `c` (..., m, n) with equal batch axes; one that
    has none, a single matrix, is used for the whole batch.
    """

    shapes: ClassVar = "trans_a(...?,m,k),trans_b(...?,k,n),(...?,m,n)?->(...,m,n)"


class Gemv(BlasMessage, frozen=True, tag=142):
    """Multiply a matrix and a vector: alpha op(a) @ x + beta y, with op(a) (m, n) and x (n,).

    `y` (m,) and `beta` come together. `out` may be `y`, and must not be `a` or `x`.
    """

    shapes: ClassVar = "trans(m,n),(n),(m)?->(m)"
    scaled_by: ClassVar = {"y": "beta"}
    in_place: ClassVar = ("y",)
    a: AccelRef
    x: AccelRef
    y: AccelRef | None = None
    _: Options
    alpha: Scale = 1.0
    beta: Scale | None = None
    trans: Trans = "n"
    out: AccelRef | None = None


class Axpy(BlasMessage, frozen=True, tag=143):
    """Add a multiple: alpha x + y, element by element, for any one shape of `x` and `y`.

    `out` may be `y` or `x`.
    """

    shapes: ClassVar = "(...),(...)->(...)"
    in_place: ClassVar = ("x", "y")
    x: AccelRef
    y: AccelRef
    _: Options
    alpha: Scale = 1.0
    out: AccelRef | None = None


class Scal(BlasMessage, frozen=True, tag=144):
    """Scale: alpha x, element by element, for any shape; `out` may be `x`."""

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    alpha: Scale
    _: Options
    out: AccelRef | None = None


class Dot(BlasMessage, frozen=True, tag=145):
    """Sum the products of the elements of two vectors, of `x`'s conjugates if `conjugate`.

    The answer is a 0-d buffer; nothing waits for it.
    """

    shapes: ClassVar = "(n),(n)->()"
    x: AccelRef
    y: AccelRef
    _: Options
    conjugate: bool = False


class Nrm2(BlasMessage, frozen=True, tag=146):
    """Take the Euclidean norm of all elements of `x`, whatever its shape.

    The answer is a 0-d buffer, real for complex `x`. It does not overflow where the norm itself
    fits the dtype.
    """

    shapes: ClassVar = "(...)->()"
    results: ClassVar = (real_of,)
    dtypes: ClassVar = INEXACT  # a norm needs a square root
    x: AccelRef


gemm = function(Gemm, by=GemmBy)
gemm_strided_batched = function(GemmStridedBatched, by=GemmStridedBatchedBy)
gemv = function(Gemv, by=GemvBy)
axpy, scal = function(Axpy, by=AxpyBy), function(Scal, by=ScalBy)
gemm_by, gemm_strided_batched_by = function(GemmBy), function(GemmStridedBatchedBy)
gemv_by, axpy_by, scal_by = function(GemvBy), function(AxpyBy), function(ScalBy)
dot, nrm2 = function(Dot), function(Nrm2)
asum, iamax, iamin = function(Asum), function(Iamax), function(Iamin)
rot, rotg = function(Rot), function(Rotg)
ger, symv, hemv = function(Ger), function(Symv), function(Hemv)
trmv, trsv, gbmv = function(Trmv), function(Trsv), function(Gbmv)
symm, hemm, syrk, herk = function(Symm), function(Hemm), function(Syrk), function(Herk)
trmm, trsm, geam, dgmm = function(Trmm), function(Trsm), function(Geam), function(Dgmm)


def swap(x: AccelRef, y: AccelRef) -> Reply[None]:
    """Exchange the elements of `x` and `y`, as `Swap` says; does not block.

    Raises:
        InvalidArgument: they are not of one shape and dtype, or are the same buffer.
    """
    return device_of(x).ask(Swap((x, y)))


class BlasActor(DefaultActor):
    """Owns the handle of BLAS in one context."""

    library: ClassVar = "blas"

    @handles(GemmGrouped)
    def gemm_grouped(self, m: GemmGrouped, launch: Launch) -> None:
        """Enqueue the products, each into its part of the result."""
        shapes = m.shapes_made()
        alpha = element(m, "alpha", m.alpha, m.a[0].dtype)
        left, right = ([launch.read(one) for one in of] for of in (m.a, m.b))
        out = launch.empty()
        ends = accumulate(map(prod, shapes))
        parts = [
            out[end - prod(shape) : end].reshape(shape)
            for end, shape in zip(ends, shapes, strict=True)
        ]
        self.lib.gemm_grouped(m, left, right, parts, alpha)

    @handles(Swap)
    def swap(self, m: Swap, launch: Launch) -> None:
        """Enqueue the exchange of two arrays that share no memory."""
        m.infer()  # the notebook could not: a shape was unknown to it
        x, y = m.pair
        same = launch.context.backend.same_memory
        if x.storage is y.storage and same(array_of(x), array_of(y)):
            text = f"x {describe(x)} and y {describe(y)} are overlapping views of one buffer"
            raise InvalidArgument(f"Swap: {text}; copy one first")
        self.lib.swap(m, launch.write(x), launch.write(y))
