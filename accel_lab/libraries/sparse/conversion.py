"""Sparse matrices from and to dense ones, SciPy's, buffers, and between the formats."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from accel_lab.compute.device import Device, device_first, device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec
from accel_lab.errors import AccelError, InvalidArgument, UnsupportedDtype
from accel_lab.libraries.authoring.operand import plain, result
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.sparse.matrix import (
    FORMATS,
    Format,
    Parts,
    Shape,
    SparseRef,
    require_sparse,
)
from accel_lab.libraries.sparse.message import (
    INDEX_DTYPES,
    VALUES,
    OfMatrix,
    compressed,
    require_block,
    require_format,
    require_matrix,
)

_SCIPYS = frozenset({"float32", "float64", "complex64", "complex128"})


class Densify(OfMatrix[AccelRef], frozen=True, tag=343):
    """Make a dense matrix of a sparse one, with zeros where nothing is stored."""

    dtypes: ClassVar = VALUES

    def infer(self) -> Spec:
        """Return all elements."""
        require_matrix(self)
        rows, columns = self.shape
        return result(self, (rows, columns), self.values.dtype)


class Sparsify(Shaped[Parts], frozen=True, array_like=True, eq=False, tag=344):
    """Store what is not zero of a dense matrix, as CSR; NaN is not zero.

    Only the device knows how much there is.
    """

    library: ClassVar[str] = "sparse"
    dtypes: ClassVar = VALUES
    shapes: ClassVar = "(m,n)->?"
    x: AccelRef
    _: Options
    index_dtype: str = "int32"

    def check(self) -> None:
        """Refuse an index dtype that is none."""
        require_index_dtype("Sparsify", self.index_dtype)

    def makes(self) -> tuple[PartialSpec, PartialSpec, Spec]:
        """Return the parts of CSR."""
        return compressed(self.x.dtype, self.index_dtype, self.x.shape[0])


class Convert(OfMatrix[Parts], frozen=True, tag=345):
    """Store a sparse matrix in another format, the same values at the same places.

    To BSR each block of `block` rows and columns is stored that has a stored value, and only the
    device knows how many these are. From BSR every element of a block is stored.
    """

    dtypes: ClassVar = VALUES
    to: Format
    _: Options
    block: tuple[int, ...] = ()

    def infer(self) -> tuple[Spec | PartialSpec, Spec | PartialSpec, Spec]:
        """Return the parts of the other format."""
        require_matrix(self)
        require_format(self, self.to)
        rows, columns = self.shape
        dtype, index_dtype, nnz = self.values.dtype, self.indices.dtype, self.values.size
        if self.to == "bsr":
            require_block(self, self.shape, self.block)
            step, width = self.block
            blocks = PartialSpec((None, step, width), dtype)
            pointers = Spec((rows // step + 1,), index_dtype)
            return blocks, PartialSpec((None,), index_dtype), pointers
        if self.block:
            raise InvalidArgument(f"Convert: block is {self.block!r}, and {self.to} has no blocks")
        extent = {"coo": nnz, "csc": columns + 1, "csr": rows + 1}[self.to]
        return Spec((nnz,), dtype), Spec((nnz,), index_dtype), Spec((extent,), index_dtype)


class Structure(NamedTuple):
    """Where a sparse matrix stores, as `Parts` says."""

    indices: AccelRef
    pointers: AccelRef


class Verify(OfMatrix[Structure], frozen=True, tag=346):
    """Copy the indices and pointers of a sparse matrix, and refuse what is none.

    They are to be within the matrix, in order, and no place is to be stored twice. Only the device
    can see that: what depends on them fails with the error.
    """

    dtypes: ClassVar = VALUES

    def infer(self) -> tuple[Spec, Spec]:
        """Return copies."""
        require_matrix(self)
        indices, pointers = self.indices, self.pointers
        return Spec(indices.shape, indices.dtype), Spec(pointers.shape, pointers.dtype)

    def judge(self, status: Any) -> AccelError | None:
        """Return what is wrong with them."""
        problem = PROBLEMS[int(status[0])]
        return InvalidArgument(f"Verify: of {self.format} {problem}") if problem else None


PROBLEMS = (
    "",
    "pointers are to begin with 0, not to decrease, and to end with the number of indices",
    "an index is outside the matrix",
    "indices are to increase within each row (of csc within each column), each place stored once",
)
"""What is wrong with a structure, by the number that the device finds."""


def require_index_dtype(what: str, dtype: Any) -> None:
    """Refuse a dtype that no index has.

    Raises:
        InvalidArgument: it is neither int32 nor int64.
    """
    if dtype not in INDEX_DTYPES:
        raise InvalidArgument(f"{what}: index_dtype is {dtype!r}; it may be 'int32' or 'int64'")


def densify(a: SparseRef) -> AccelRef:
    """Make a dense matrix of a sparse one, as `Densify`; does not block.

    Raises:
        InvalidArgument: it is no sparse matrix.
    """
    require_sparse("Densify", "a", a)
    return device_of(a.values).ask(Densify(*a.parts, a.shape, a.format))


def sparsify(x: AccelRef, *, index_dtype: str = "int32") -> SparseRef:
    """Store what is not zero of a dense matrix, as `Sparsify`; does not block.

    Raises:
        InvalidArgument: it is no matrix.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    device = device_of(x)
    shape = x.shape
    parts = device.ask(Sparsify(x, index_dtype=index_dtype))
    return SparseRef("csr", (shape[0], shape[1]), index_dtype, *parts)


from_dense = sparsify


def convert(a: SparseRef, to: Format, *, block: Shape | None = None) -> SparseRef:
    """Return a sparse matrix in another format, as `Convert`; does not block.

    One that has that format already is returned itself.

    Raises:
        InvalidArgument: there is no such format, or the blocks do not divide the matrix.
    """
    require_sparse("Convert", "a", a)
    if to == a.format and block is None:
        return a
    message = Convert(*a.parts, a.shape, a.format, to, block=() if block is None else block)
    return SparseRef(to, a.shape, a.index_dtype, *device_of(a.values).ask(message))


def transpose(a: SparseRef) -> SparseRef:
    """Return it transposed, as `SparseRef.T`; does not block.

    Raises:
        InvalidArgument: it is no sparse matrix.
    """
    a = require_sparse("transpose", "a", a)
    if a.format not in ("csr", "csc"):
        a = a.tocsr()
    rows, columns = a.shape
    return SparseRef(
        "csc" if a.format == "csr" else "csr", (columns, rows), a.index_dtype, *a.parts
    )


def from_scipy(device: Device, a: Any, *, index_dtype: str | None = None) -> SparseRef:
    """Put one of SciPy's sparse arrays or matrices on a device; does not block.

    It keeps its format if that is CSR, CSC, COO or BSR, else it becomes CSR. What is stored twice
    is added up. The indices have their own dtype unless another is asked for.

    Raises:
        InvalidArgument: it is none, or has more than two axes.
    """
    import scipy.sparse

    device = device_first(device)
    theirs: Any = a
    if not scipy.sparse.issparse(a) or theirs.ndim != len(("rows", "columns")):
        text = f"from_scipy: a is {type(a).__name__}, and is to be a sparse matrix of SciPy's"
        raise InvalidArgument(text)
    form: Format = theirs.format if theirs.format in FORMATS else "csr"
    own = theirs.asformat(form)
    if not own.has_canonical_format:
        own = own.copy()
        own.sum_duplicates()
    if form == "coo":
        own = own.tocsr().tocoo()  # by rows
        indices, pointers = own.col, own.row
    else:
        indices, pointers = own.indices, own.indptr
    if index_dtype is not None:
        require_index_dtype("from_scipy", index_dtype)
    wide = index_dtype or ("int64" if "int64" in (indices.dtype, pointers.dtype) else "int32")
    if max(*own.shape, own.nnz) > np.iinfo(wide).max:
        raise InvalidArgument(f"from_scipy: int32 is too narrow for {list(own.shape)}")
    rows, columns = map(int, own.shape)
    buffers = own.data, indices.astype(wide), pointers.astype(wide)
    return SparseRef(form, (rows, columns), wide, *map(device.put, buffers))


def to_scipy(a: SparseRef) -> Any:
    """Fetch a sparse matrix as SciPy's array of its format; waits.

    Raises:
        InvalidArgument: it is no sparse matrix.
        UnsupportedDtype: SciPy has no sparse array of these values, as float16.
    """
    import scipy.sparse

    a = require_sparse("to_scipy", "a", a)
    if a.dtype not in _SCIPYS:
        text = f"to_scipy: SciPy has no sparse array of {a.dtype}; a.astype('float32') first"
        raise UnsupportedDtype(text)
    values, indices, pointers = (one.result() for one in map(a.device.get, a.parts))
    if a.format == "coo":
        made: Any = scipy.sparse.coo_array((values, (pointers, indices)), shape=a.shape)
    else:
        kind = getattr(scipy.sparse, f"{a.format}_array")
        made = kind((values, indices, pointers), shape=a.shape)
    made.has_canonical_format = True
    return made


def verify(
    values: AccelRef,
    indices: AccelRef,
    pointers: AccelRef,
    shape: Shape,
    format: Format,  # noqa: A002 - SciPy's name
) -> SparseRef:
    """Make a matrix of buffers that are `Parts` of it, as `Verify` has them; does not block.

    Raises:
        InvalidArgument: they do not fit. What only the device sees fails what depends on it.
    """
    rows, columns = shape if len(shape) == len(("rows", "columns")) else (-1, -1)
    message = Verify(values, indices, pointers, (plain(rows), plain(columns)), format)
    checked = device_of(values).ask(message)
    return SparseRef(
        format, message.shape, str(indices.dtype), values, checked.indices, checked.pointers
    )


def csr(values: AccelRef, indices: AccelRef, pointers: AccelRef, shape: Shape) -> SparseRef:
    """Make a matrix by compressed rows of buffers, as `Verify` has them; does not block.

    Raises:
        InvalidArgument: they do not fit. What only the device sees fails what depends on it.
    """
    return verify(values, indices, pointers, shape, "csr")


def csc(values: AccelRef, indices: AccelRef, pointers: AccelRef, shape: Shape) -> SparseRef:
    """Make a matrix by compressed columns of buffers, as `Verify` has them; does not block.

    Raises:
        InvalidArgument: they do not fit. What only the device sees fails what depends on it.
    """
    return verify(values, indices, pointers, shape, "csc")


def coo(values: AccelRef, columns: AccelRef, rows: AccelRef, shape: Shape) -> SparseRef:
    """Make a matrix of values, columns and rows, in order by rows; does not block.

    Raises:
        InvalidArgument: they do not fit. What only the device sees fails what depends on it.
    """
    return verify(values, columns, rows, shape, "coo")


def bsr(values: AccelRef, indices: AccelRef, pointers: AccelRef, shape: Shape) -> SparseRef:
    """Make a matrix of blocks (blocks, r, c), as `Verify` has them; does not block.

    Raises:
        InvalidArgument: they do not fit. What only the device sees fails what depends on it.
    """
    return verify(values, indices, pointers, shape, "bsr")


__all__ = [
    "Convert",
    "Densify",
    "Sparsify",
    "Structure",
    "Verify",
    "bsr",
    "convert",
    "coo",
    "csc",
    "csr",
    "densify",
    "from_dense",
    "from_scipy",
    "sparsify",
    "to_scipy",
    "transpose",
    "verify",
]
