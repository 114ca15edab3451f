"""A sparse matrix on a device: three buffers, each an ordinary handle, and how to read them.

Every matrix is canonical: no place is stored twice, and the stored places come in order, row by row
(of CSC column by column). Stored zeros count as stored.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument

Format: TypeAlias = Literal["csr", "csc", "coo", "bsr"]
FORMATS: tuple[Format, ...] = ("csr", "csc", "coo", "bsr")
Shape: TypeAlias = tuple[int, int]
Trans: TypeAlias = Literal["n", "t", "c"]
"""How a matrix is turned: not, transposed, or conjugate-transposed."""
Uplo: TypeAlias = Literal["l", "u"]
"""Which triangle of a matrix counts, the lower or the upper one; the other is not read."""


class Parts(NamedTuple):
    """The buffers of a sparse matrix.

    Attributes:
        values: what is stored, (nnz,); of BSR the blocks, (blocks, r, c).
        indices: the column of each, of CSC the row, of BSR the column of blocks.
        pointers: where each row begins in these, and the end; of CSC each column, of BSR each row
            of blocks. Of COO it is the row of each value.
    """

    values: AccelRef
    indices: AccelRef
    pointers: AccelRef


@dataclass(frozen=True, eq=False)
class SparseRef:
    """A sparse matrix on a device: `a @ x`, `a + b`, `a.tocsc()`, `a.get()`.

    It is made by `sparse.from_scipy`, `sparse.from_dense`, or of buffers by `sparse.csr`, `csc`,
    `coo` and `bsr`. Its buffers are handles as any other: they are recorded, rebuilt and freed as
    these are.

    Attributes:
        format: `csr`, `csc`, `coo` or `bsr`.
        shape: its rows and columns.
        index_dtype: the dtype of its indices and pointers, `int32` or `int64`.
        values, indices, pointers: its buffers, as `Parts` says.
    """

    format: Format
    shape: Shape
    index_dtype: str
    values: AccelRef
    indices: AccelRef
    pointers: AccelRef

    functions: ClassVar[Any] = None
    """The module `sparse`, whose functions the operators call."""
    __array_ufunc__ = None  # NumPy's arrays leave `array @ a` to it, which refuses

    @property
    def parts(self) -> Parts:
        """Its buffers."""
        return Parts(self.values, self.indices, self.pointers)

    @property
    def dtype(self) -> str:
        """The dtype of its values; waits where only the device knows it."""
        return self.values.dtype

    @property
    def nnz(self) -> int:
        """How many values are stored; waits where only the device knows that."""
        return self.values.size

    @property
    def device(self) -> Any:
        """The device that has it."""
        return self.values.device

    def get(self) -> Any:
        """Fetch it as SciPy's array of this format; waits.

        Raises:
            UnsupportedDtype: SciPy has no sparse array of these values, as float16.
        """
        return self.functions.to_scipy(self)

    def result(self, timeout_s: float | None = None) -> "SparseRef":
        """Wait until it is made, and return it."""
        for part in self.parts:
            part.result(timeout_s)
        return self

    def to(self, format: Format, *, block: Shape | None = None) -> "SparseRef":  # noqa: A002 - SciPy's name
        """Return it in another format; of one in that format itself. Does not block."""
        return self.functions.convert(self, format, block=block)  # type: ignore[no-any-return]

    def tocsr(self) -> "SparseRef":
        """Return it by compressed rows."""
        return self.to("csr")

    def tocsc(self) -> "SparseRef":
        """Return it by compressed columns."""
        return self.to("csc")

    def tocoo(self) -> "SparseRef":
        """Return it as a list of rows, columns and values."""
        return self.to("coo")

    def tobsr(self, block: Shape) -> "SparseRef":
        """Return it by compressed rows of dense blocks, of which each has a stored value."""
        return self.to("bsr", block=block)

    def toarray(self) -> AccelRef:
        """Return it as a dense buffer."""
        return self.functions.densify(self)  # type: ignore[no-any-return]

    @property
    def T(self) -> "SparseRef":  # noqa: N802 - NumPy's name
        """It transposed: CSR becomes CSC of the same buffers, and CSC becomes CSR.

        One of another format is converted to CSR first. Does not block.
        """
        return self.functions.transpose(self)  # type: ignore[no-any-return]

    def conj(self) -> "SparseRef":
        """Return it with conjugate values; the indices are the same buffers."""
        return self.with_values(self.values.conj())

    def astype(self, dtype: object) -> "SparseRef":
        """Return it with values of another dtype; the indices are the same buffers."""
        return self.with_values(self.values.astype(dtype))

    def with_index_dtype(self, dtype: str) -> "SparseRef":
        """Return it with `int32` or `int64` indices; the values are the same buffer.

        Raises:
            InvalidArgument: it is neither, or int32 is too narrow for the matrix.
        """
        if dtype not in ("int32", "int64"):
            text = f"with_index_dtype: dtype is {dtype!r}; it may be 'int32' or 'int64'"
            raise InvalidArgument(text)
        if dtype == self.index_dtype:
            return self
        if dtype == "int32" and max(*self.shape, self.nnz) >= 2**31:
            raise InvalidArgument(f"with_index_dtype: int32 is too narrow for {self!r}")
        indices, pointers = self.indices.astype(dtype), self.pointers.astype(dtype)
        return SparseRef(self.format, self.shape, dtype, self.values, indices, pointers)

    def with_values(self, values: AccelRef) -> "SparseRef":
        """Return a matrix that stores other values at the same places.

        Raises:
            InvalidArgument: they are not as many.
        """
        if values.known and self.values.known and values.shape != self.values.shape:
            text = f"{list(values.shape)}, and are to be {list(self.values.shape)}"
            raise InvalidArgument(f"with_values: values are {values.dtype}{text}, one for each")
        places = self.indices, self.pointers
        return SparseRef(self.format, self.shape, self.index_dtype, values, *places)

    def free(self) -> None:
        """Give the memory of its buffers back; does not block."""
        for part in self.parts:
            part.free()

    def __matmul__(self, other: Any) -> Any:
        """Multiply by a vector, a dense matrix or a sparse one."""
        return self.functions.matmul(self, other)

    def __add__(self, other: Any) -> "SparseRef":
        if not isinstance(other, SparseRef):
            return NotImplemented
        return self.functions.spadd(self, other)  # type: ignore[no-any-return]

    def __sub__(self, other: Any) -> "SparseRef":
        if not isinstance(other, SparseRef):
            return NotImplemented
        return self.functions.spadd(self, other, beta=-1)  # type: ignore[no-any-return]

    def __mul__(self, number: Any) -> "SparseRef":
        if isinstance(number, SparseRef | AccelRef):
            return NotImplemented
        return self.with_values(self.values * number)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> "SparseRef":
        if isinstance(number, SparseRef | AccelRef):
            return NotImplemented
        return self.with_values(self.values / number)

    def __neg__(self) -> "SparseRef":
        return self.with_values(-self.values)

    def __repr__(self) -> str:
        rows, columns = self.shape
        stored = f"{self.values.size} stored" if self.values.known else "not yet known how many"
        dtype = self.values.dtype if self.values.known else "values"
        name, format_ = self.device.name, self.format
        return f"<SparseRef {format_} {dtype}[{rows}, {columns}] on {name}, {stored}>"


def require_sparse(what: str, name: str, given: Any) -> SparseRef:
    """Return what is a sparse matrix.

    Raises:
        InvalidArgument: it is something else.
    """
    if isinstance(given, SparseRef):
        return given
    text = f"{what}: {name} is {type(given).__name__}, and is to be a SparseRef"
    raise InvalidArgument(f"{text}; sparse.from_scipy(gpu, {name}) or sparse.from_dense makes one")
