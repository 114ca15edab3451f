"""Products of a sparse matrix and dense vectors or matrices."""

from typing import Any, ClassVar

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import (
    Scalar,
    coefficient,
    describe,
    kind,
    plain,
    require_out,
    require_scaled,
    result,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.sparse.matrix import Shape, SparseRef, Trans, require_sparse
from accel_lab.libraries.sparse.message import (
    VALUES,
    OfMatrix,
    require_csr,
    require_dtype,
    require_extents,
    require_matrix,
    require_word,
)


class Spmv(OfMatrix[AccelRef], frozen=True, tag=340):
    """Multiply a sparse matrix and a vector: alpha op(a) @ x + beta y, with op(a) (m, n).

    `trans` is "n" (as it is), "t" (transposed) or "c" (conjugate-transposed). `y` (m,) and `beta`
    come together. `out` may be `y`, and must not be `x`. Only stored values are multiplied: an
    infinity of `x` counts where one is.
    """

    dtypes: ClassVar = VALUES
    scaled_by: ClassVar = {"y": "beta"}
    in_place: ClassVar = ("y",)
    x: AccelRef
    y: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    trans: Trans = "n"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a vector with an element for each row of op(a)."""
        rows, columns = _turned(self)
        require_dtype(self, "x", "y")
        require_extents(self, "x", (columns,), why=_against(self))
        require_extents(self, "y", (rows,), why=_against(self))
        return _scaled(self, "y", self.y, Spec((rows,), self.values.dtype), self.x)


class Spmm(OfMatrix[AccelRef], frozen=True, tag=341):
    """Multiply a sparse and a dense matrix: alpha op(a) @ b + beta c, with op(a) (m, k), b (k, n).

    `trans` turns `a` alone; of `b` give a transposed view. `c` (m, n) and `beta` come together.
    `out` may be `c`, and must not be `b`. Only stored values are multiplied.
    """

    dtypes: ClassVar = VALUES
    scaled_by: ClassVar = {"c": "beta"}
    in_place: ClassVar = ("c",)
    b: AccelRef
    c: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    trans: Trans = "n"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a matrix with the rows of op(a) and the columns of b."""
        rows, columns = _turned(self)
        require_dtype(self, "b", "c")
        if self.b.ndim != len(("rows", "columns")):
            text = f"{kind(self)}: b is {describe(self.b)}, and is to be a matrix"
            raise InvalidArgument(f"{text}; Spmv takes vectors")
        shape = rows, self.b.shape[1]
        require_extents(self, "b", (columns, shape[1]), why=_against(self))
        require_extents(self, "c", shape, why=_against(self))
        return _scaled(self, "c", self.c, result(self, shape, self.values.dtype), self.b)


class Sddmm(OfMatrix[AccelRef], frozen=True, tag=342):
    """Multiply dense matrices where a sparse one stores: alpha (x @ y) there + beta its values.

    `x` is (m, k), `y` (k, n), and the matrix CSR (m, n). The answer is the new values, in the order
    of the old ones. Without `beta` the old values are not read.
    """

    dtypes: ClassVar = VALUES
    x: AccelRef
    y: AccelRef
    _: Options
    alpha: Factor = 1.0
    beta: Factor = 0.0

    def infer(self) -> Spec:
        """Return as many values as are stored."""
        require_csr(self)
        require_dtype(self, "x", "y")
        rows, columns = self.shape
        inner = self.x.shape[1] if self.x.ndim == len(self.shape) else None
        why = f" beside a sparse matrix of {[rows, columns]}"
        require_extents(self, "x", (rows, inner or 0), why=why)
        require_extents(self, "y", (inner or 0, columns), why=why)
        coefficient(self, "alpha", self.alpha, self.values.dtype)
        coefficient(self, "beta", self.beta, self.values.dtype)
        return Spec(self.values.shape, self.values.dtype)


def _turned(m: Any) -> Shape:
    """Return the shape of op(a)."""
    require_matrix(m)
    require_word(m, "trans", m.trans, ("n", "t", "c"))
    rows, columns = m.shape
    return (rows, columns) if m.trans == "n" else (columns, rows)


def _against(m: Any) -> str:
    turned = "" if m.trans == "n" else f" with trans={m.trans!r}"
    return f" beside a sparse matrix of {list(m.shape)}{turned}"


def _scaled(m: Any, name: str, ref: AccelRef | None, made: Spec, dense: AccelRef) -> Spec:
    dtype = m.values.dtype
    coefficient(m, "alpha", m.alpha, dtype)
    if ref is not None or m.beta is not None:
        require_scaled(m, name, ref, "beta", dtype)
    require_out(m, m.out, made, m.values, m.indices, m.pointers, dense)
    return made


def spmv(
    a: SparseRef,
    x: AccelRef,
    y: AccelRef | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar | None = None,
    trans: Trans = "n",
    out: AccelRef | None = None,
) -> AccelRef:
    """Multiply a sparse matrix and a vector, as `Spmv`; does not block.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    require_sparse("Spmv", "a", a)
    message = Spmv(
        *a.parts,
        a.shape,
        a.format,
        x,
        y,
        alpha=plain(alpha),
        beta=plain(beta),
        trans=trans,
        out=out,
    )
    return device_of(a.values).ask(message)


def spmm(
    a: SparseRef,
    b: AccelRef,
    c: AccelRef | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar | None = None,
    trans: Trans = "n",
    out: AccelRef | None = None,
) -> AccelRef:
    """Multiply a sparse and a dense matrix, as `Spmm`; does not block.

    Raises:
        InvalidArgument: the operands or options do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    require_sparse("Spmm", "a", a)
    message = Spmm(
        *a.parts,
        a.shape,
        a.format,
        b,
        c,
        alpha=plain(alpha),
        beta=plain(beta),
        trans=trans,
        out=out,
    )
    return device_of(a.values).ask(message)


def sddmm(
    a: SparseRef, x: AccelRef, y: AccelRef, *, alpha: Scalar = 1.0, beta: Scalar = 0.0
) -> SparseRef:
    """Multiply dense matrices where `a` stores, as `Sddmm`; return a matrix of the same places.

    One that is not CSR is converted to it first. Does not block.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Sddmm", "a", a).tocsr()
    message = Sddmm(*a.parts, a.shape, a.format, x, y, alpha=plain(alpha), beta=plain(beta))
    values = device_of(a.values).ask(message)
    return SparseRef("csr", a.shape, a.index_dtype, values, a.indices, a.pointers)
