"""Sums and products of sparse matrices, by compressed rows.

What is stored depends on what the operands store alone: a sum that happens to be 0 is stored.
"""

from typing import Any

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import Scalar, coefficient, kind, plain
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.sparse.matrix import Parts, Shape, SparseRef, require_sparse
from accel_lab.libraries.sparse.message import (
    OfMatrix,
    compressed,
    require_csr,
    require_dtype,
    require_matrix,
)


class OfTwo(OfMatrix[Parts], frozen=True):
    """A message of two matrices by compressed rows."""

    b_values: AccelRef
    b_indices: AccelRef
    b_pointers: AccelRef
    b_shape: Shape

    def require_two(self) -> tuple[Shape, Shape]:
        """Return the shapes of both.

        Raises:
            InvalidArgument: one is no matrix by rows, or their dtypes differ.
        """
        require_csr(self)
        require_matrix(self, "b_", self.b_shape, "csr")
        require_dtype(self, "b_values")
        if self.b_indices.dtype != self.indices.dtype:
            text = f"indices are {self.indices.dtype} and b_indices {self.b_indices.dtype}"
            raise InvalidArgument(f"{kind(self)}: {text}; give both one with_index_dtype")
        return (self.shape[0], self.shape[1]), (self.b_shape[0], self.b_shape[1])

    def made(self, rows: int) -> tuple[PartialSpec, PartialSpec, Spec]:
        """Return the parts of the result, of which only the device knows how much it stores."""
        return compressed(self.values.dtype, self.indices.dtype, rows)


class Spgemm(OfTwo, frozen=True, tag=347):
    """Multiply sparse matrices: alpha a @ b, both by compressed rows, and so is the result.

    A place is stored where some product of stored values is added up, also if the sum is 0.
    """

    _: Options
    alpha: Factor = 1.0

    def infer(self) -> tuple[PartialSpec, PartialSpec, Spec]:
        """Return the rows of `a`."""
        (rows, inner), (other, columns) = self.require_two()
        if inner != other:
            text = f"a is {[rows, inner]} and b {[other, columns]}; {inner} and {other} are to be"
            raise InvalidArgument(f"Spgemm: {text} equal")
        coefficient(self, "alpha", self.alpha, self.values.dtype)
        return self.made(rows)


class Spadd(OfTwo, frozen=True, tag=348):
    """Add sparse matrices: alpha a + beta b, both by compressed rows, and so is the result.

    A place is stored where one of them stores, also if the sum is 0.
    """

    _: Options
    alpha: Factor = 1.0
    beta: Factor = 1.0

    def infer(self) -> tuple[PartialSpec, PartialSpec, Spec]:
        """Return the rows of both."""
        shape, other = self.require_two()
        if shape != other:
            text = f"a is {list(shape)} and b {list(other)}; they are to be of one shape"
            raise InvalidArgument(f"Spadd: {text}")
        coefficient(self, "alpha", self.alpha, self.values.dtype)
        coefficient(self, "beta", self.beta, self.values.dtype)
        return self.made(shape[0])


def spgemm(a: SparseRef, b: SparseRef, *, alpha: Scalar = 1.0) -> SparseRef:
    """Multiply sparse matrices, as `Spgemm`; does not block.

    Those of another format are converted to CSR first, and indices of two dtypes to int64.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a, b = _alike("Spgemm", a, b)
    message = Spgemm(*a.parts, a.shape, "csr", *b.parts, b.shape, alpha=plain(alpha))
    made = device_of(a.values).ask(message)
    return SparseRef("csr", (a.shape[0], b.shape[1]), a.index_dtype, *made)


def spadd(a: SparseRef, b: SparseRef, *, alpha: Scalar = 1.0, beta: Scalar = 1.0) -> SparseRef:
    """Add sparse matrices, as `Spadd`; does not block.

    Those of another format are converted to CSR first, and indices of two dtypes to int64.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a, b = _alike("Spadd", a, b)
    message = Spadd(
        *a.parts, a.shape, "csr", *b.parts, b.shape, alpha=plain(alpha), beta=plain(beta)
    )
    return SparseRef("csr", a.shape, a.index_dtype, *device_of(a.values).ask(message))


def _alike(what: str, a: Any, b: Any) -> tuple[SparseRef, SparseRef]:
    a, b = require_sparse(what, "a", a).tocsr(), require_sparse(what, "b", b).tocsr()
    if a.index_dtype != b.index_dtype:
        a, b = a.with_index_dtype("int64"), b.with_index_dtype("int64")
    return a, b
