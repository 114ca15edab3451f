"""Linear algebra in BLAS's three levels: cuBLAS on `cuda`, NumPy and SciPy on `host`.

A message makes a new buffer unless `out` names one. Operands are row-major as NumPy's and may be
views of any strides. As in BLAS, `c` and `y` are not read where `beta` is 0. Narrow floats
(float16, bfloat16, float8) are computed in float32 and rounded once; integers wrap; bool is the
semiring of `or` and `and`. A factor is any number; on the wire a complex one is the list of its two
parts.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from accel_lab.compute.arrays.dtypes import real_of
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import INEXACT
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import (
    Number,
    coefficient,
    describe,
    element,
    one_dtype,
    output,
    require_out,
    result,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.blas.product import (
    MATRIX,
    BlasMessage,
    Product,
    Trans,
    UpdateName,
    factors,
    product_spec,
    require_update,
    turned,
)


class Gemm(Product, frozen=True, tag=140):
    """Multiply matrices: alpha op(a) @ op(b) + beta c, with op(a) (m, k) and op(b) (k, n).

    `trans_a` and `trans_b` are "n" (as it is), "t" (transposed) or "c" (conjugate-transposed).
    `c` (m, n) and `beta` come together. `out` may be `c`, and must not be `a` or `b`. With an
    alpha of 0 the product is left out, and with a beta of 0 `c`: no infinity or NaN there counts.
    """

    def infer(self) -> Spec:
        """Return (m, n) and the operands' dtype."""
        return product_spec(self, batched=False)


class GemmStridedBatched(Product, frozen=True, tag=141):
    """Multiply stacks of matrices: `Gemm` for every index of the leading batch axes.

    op(a) is (..., m, k), op(b) (..., k, n) and `c` (..., m, n) with equal batch axes; one that
    has none, a single matrix, is used for the whole batch.
    """

    def infer(self) -> Spec:
        """Return (..., m, n) and the operands' dtype."""
        return product_spec(self, batched=True)


class Gemv(BlasMessage, frozen=True, tag=142):
    """Multiply a matrix and a vector: alpha op(a) @ x + beta y, with op(a) (m, n) and x (n,).

    `y` (m,) and `beta` come together. `out` may be `y`, and must not be `a` or `x`.
    """

    a: AccelRef
    x: AccelRef
    y: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    trans: Trans = "n"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return (m,) and the operands' dtype."""
        a, x = self.a.shape, self.x.shape
        if len(a) != MATRIX or len(x) != 1:
            raise InvalidArgument(
                f"Gemv multiplies a matrix (m, n) and a vector (n,), but a is {describe(self.a)} "
                f"and x is {describe(self.x)}"
            )
        dtype = one_dtype(self, self.a, self.x, self.y)
        m, n = turned(self, "trans", self.trans, self.a)
        if n != x[0]:
            raise InvalidArgument(
                f"Gemv: op(a) has {n} columns and x {x[0]} elements; a is {describe(self.a)} "
                f"with trans={self.trans!r}, x is {describe(self.x)}"
            )
        coefficient(self, "alpha", self.alpha, dtype)
        spec = result(self, (m,), dtype)
        require_update(self, "y", self.y, self.beta, spec)
        require_out(self, self.out, spec, self.a, self.x)
        return spec


class Axpy(BlasMessage, frozen=True, tag=143):
    """Add a multiple: alpha x + y, element by element, for any one shape of `x` and `y`.

    `out` may be `y` or `x`.
    """

    shapes: ClassVar = "(...),(...)->(...)"
    in_place: ClassVar = ("x", "y")
    x: AccelRef
    y: AccelRef
    _: Options
    alpha: Factor = 1.0
    out: AccelRef | None = None


class Scal(BlasMessage, frozen=True, tag=144):
    """Scale: alpha x, element by element, for any shape; `out` may be `x`."""

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    alpha: Factor
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


gemm, gemm_strided_batched = function(Gemm), function(GemmStridedBatched)
gemv = function(Gemv)
axpy, scal, dot, nrm2 = function(Axpy), function(Scal), function(Dot), function(Nrm2)


class BlasLibrary(Protocol):
    """What a backend provides; arrays may have any strides, and each call only enqueues.

    `out` is the very array `c`, `y` or `x` when it is updated in place; other operands never
    share memory with it. `c` and `y` are None where `beta` is 0. Factors are of the Python type
    of the dtype's elements. The dtype is the buffers' own, because a backend may store narrow
    floats as integers.
    """

    def gemm(
        self,
        a: Any,
        b: Any,
        c: Any | None,
        out: Any,
        *,
        dtype: str,
        alpha: Number,
        beta: Number,
        trans_a: Trans,
        trans_b: Trans,
    ) -> None:
        """Write alpha op(a) @ op(b) + beta c.

        `out` is one matrix, or (..., m, n); then an operand of two axes serves the whole batch.
        """

    def gemv(
        self,
        a: Any,
        x: Any,
        y: Any | None,
        out: Any,
        *,
        dtype: str,
        alpha: Number,
        beta: Number,
        trans: Trans,
    ) -> None:
        """Write alpha op(a) @ x + beta y."""

    def axpy(self, x: Any, y: Any, out: Any, *, dtype: str, alpha: Number) -> None:
        """Write alpha x + y; any shape."""

    def scal(self, x: Any, out: Any, *, dtype: str, alpha: Number) -> None:
        """Write alpha x; any shape."""

    def update_again(
        self, name: UpdateName, x: Any, y: Any, out: Any, *, dtype: str, alpha: Number
    ) -> Callable[[], object] | None:
        """Return what enqueues a sum once more on the same memory, if there is less to do then.

        It keeps addresses, and none of the arrays. For `scal` y is x.
        """


class BlasActor(LibraryActor):
    """Owns the BLAS handle and the stream of one context."""

    library = "blas"
    lib: BlasLibrary

    @handles(Gemm)
    def gemm(self, m: Gemm, launch: Launch) -> None:
        """Enqueue one product."""
        self._multiply(m, launch)

    @handles(GemmStridedBatched)
    def gemm_strided_batched(self, m: GemmStridedBatched, launch: Launch) -> None:
        """Enqueue a batch of products."""
        self._multiply(m, launch)

    @handles(Gemv)
    def gemv(self, m: Gemv, launch: Launch) -> None:
        """Enqueue one product with a vector."""
        out, dtype = output(launch, "a", "x", "y"), m.a.dtype
        alpha, beta, y = factors(m, m.alpha, m.beta, m.y, dtype)
        self.lib.gemv(
            launch.read(m.a),
            launch.read(m.x),
            None if y is None else launch.read(y),
            out,
            dtype=dtype,
            alpha=alpha,
            beta=beta,
            trans=m.trans,
        )

    @handles(Axpy)
    def axpy(self, m: Axpy, launch: Launch) -> None:
        """Enqueue one sum."""
        out = output(launch, "x", "y")
        alpha = element(m, "alpha", m.alpha, m.x.dtype)
        x, y = launch.read(m.x), launch.read(m.y)
        self.lib.axpy(x, y, out, dtype=m.x.dtype, alpha=alpha)
        if launch.comes_again and m.out is not None:
            again = self.lib.update_again("axpy", x, y, out, dtype=m.x.dtype, alpha=alpha)
            launch.prepare(again, reads=(m.x, m.y), writes=(m.out,))

    @handles(Scal)
    def scal(self, m: Scal, launch: Launch) -> None:
        """Enqueue one scaling."""
        out = output(launch, "x")
        alpha = element(m, "alpha", m.alpha, m.x.dtype)
        x = launch.read(m.x)
        self.lib.scal(x, out, dtype=m.x.dtype, alpha=alpha)
        if launch.comes_again and m.out is not None:
            again = self.lib.update_again("scal", x, x, out, dtype=m.x.dtype, alpha=alpha)
            launch.prepare(again, reads=(m.x,), writes=(m.out,))

    def _multiply(self, m: Product, launch: Launch) -> None:
        out, dtype = output(launch, "a", "b", "c"), m.a.dtype
        alpha, beta, c = factors(m, m.alpha, m.beta, m.c, dtype)
        self.lib.gemm(
            launch.read(m.a),
            launch.read(m.b),
            None if c is None else launch.read(c),
            out,
            dtype=dtype,
            alpha=alpha,
            beta=beta,
            trans_a=m.trans_a,
            trans_b=m.trans_b,
        )
