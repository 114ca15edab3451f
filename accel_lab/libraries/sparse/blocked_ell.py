"""Blocked-ELL matrices: each row of square blocks stores as many, and zeros fill it up."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.authoring.operand import describe, kind, one_dtype, plain, result
from accel_lab.libraries.authoring.shaped import R, Shaped
from accel_lab.libraries.sparse.matrix import Parts, Shape, SparseRef, require_sparse
from accel_lab.libraries.sparse.message import (
    INDEX_DTYPES,
    VALUES,
    OfMatrix,
    require_block,
    require_matrix,
    require_shape,
)


class EllParts(NamedTuple):
    """The buffers of a Blocked-ELL matrix.

    Attributes:
        values: what is stored, (m, w b): of each row of blocks its w blocks side by side.
        columns: the column of each block, (m / b, w), in order; behind the last one -1.
    """

    values: AccelRef
    columns: AccelRef


class Ellify(OfMatrix[EllParts], frozen=True, tag=364):
    """Store a BSR matrix of square blocks as Blocked-ELL, whose rows of blocks have one length.

    It is that of the longest, and zeros fill up the others. Only the device knows how long that is.
    """

    dtypes: ClassVar = VALUES

    def infer(self) -> tuple[PartialSpec, PartialSpec]:
        """Return the parts of Blocked-ELL."""
        require_matrix(self)
        shape = self.values.shape
        if self.format != "bsr" or shape[1] != shape[2]:
            text = f"the matrix is {self.format}, its values {describe(self.values)}"
            raise InvalidArgument(f"Ellify: {text}, and is to be bsr of square blocks")
        rows = self.shape[0]
        columns = PartialSpec((rows // shape[1], None), self.indices.dtype)
        return PartialSpec((rows, None), self.values.dtype), columns


class OfEll(Shaped[R], frozen=True, array_like=True, eq=False):
    """A message of a Blocked-ELL matrix: its buffers, its shape and the extent of its blocks."""

    library: ClassVar[str] = "sparse"
    dtypes: ClassVar = VALUES
    values: AccelRef
    columns: AccelRef
    shape: Shape
    block: int

    def require_parts(self) -> Shape:
        """Return its shape.

        Raises:
            InvalidArgument: its buffers are no Blocked-ELL matrix of this shape.
        """
        shape, values, columns, block = self.shape, self.values, self.columns, self.block
        require_block(self, require_shape(self, shape), (block, block))
        two = len(shape)
        if columns.ndim != two or columns.dtype not in INDEX_DTYPES:
            text = f"columns are {describe(columns)}, and are to be a matrix of int32 or int64"
            raise InvalidArgument(f"{kind(self)}: {text}")
        rows = shape[0] // block, shape[0]
        expected = rows[1], columns.shape[1] * block
        if columns.shape[0] != rows[0] or values.shape != expected:
            text = f"values are {describe(values)} and columns {describe(columns)}"
            why = f"of {list(shape)} in blocks of {block} there are {rows[1]} and {rows[0]} rows"
            raise InvalidArgument(f"{kind(self)}: {text}; {why}, of as many blocks")
        return shape[0], shape[1]

    def judge(self, status: Any) -> AccelError | None:
        """Refuse a row of blocks that are not in the matrix, or not in order."""
        row = int(status[0])
        if row < 0:
            return None
        text = f"{kind(self)}: columns of row {row} of blocks are to be from 0 to "
        last = self.shape[1] // self.block - 1
        return InvalidArgument(f"{text}{last}, each larger than the one before, then -1")


class Unellify(OfEll[Parts], frozen=True, tag=365):
    """Store a Blocked-ELL matrix as BSR, without what fills it up.

    Only the device knows how much is left.
    """

    def infer(self) -> tuple[PartialSpec, PartialSpec, Spec]:
        """Return the parts of BSR."""
        rows, _ = self.require_parts()
        dtype, index_dtype, block = self.values.dtype, self.columns.dtype, self.block
        blocks = PartialSpec((None, block, block), dtype)
        pointers = Spec((rows // block + 1,), index_dtype)
        return blocks, PartialSpec((None,), index_dtype), pointers


class EllMatmul(OfEll[AccelRef], frozen=True, tag=366):
    """Multiply a Blocked-ELL matrix (m, k) and a dense one (k, n).

    Only stored blocks are multiplied. Sums of narrow floats are formed in float32.
    """

    b: AccelRef

    def infer(self) -> Spec:
        """Return the rows of the one and the columns of the other."""
        rows, inner = self.require_parts()
        dtype = one_dtype(self, self.values, self.b)
        if self.b.ndim != len(self.shape) or self.b.shape[0] != inner:
            text = f"EllMatmul: b is {describe(self.b)}, and is to be a matrix of {inner} rows"
            raise InvalidArgument(f"{text}, as the other has columns")
        return result(self, (rows, self.b.shape[1]), dtype)


@dataclass(frozen=True, eq=False)
class BlockedEll:
    """A Blocked-ELL matrix on a device: `a @ b`, `a.tobsr()`.

    Attributes:
        shape: its rows and columns.
        block: the rows and columns of a block.
        values, columns: its buffers, as `EllParts` says.
    """

    shape: Shape
    block: int
    values: AccelRef
    columns: AccelRef
    __array_ufunc__ = None  # NumPy's arrays leave `array @ a` to it, which refuses

    def __matmul__(self, b: AccelRef) -> AccelRef:
        """Multiply by a dense matrix, as `EllMatmul`."""
        return ell_matmul(self, b)

    def tobsr(self) -> SparseRef:
        """Return it by compressed rows of blocks, as `Unellify`; does not block."""
        return unellify(self)

    def toarray(self) -> AccelRef:
        """Return it as a dense buffer."""
        return self.tobsr().toarray()

    def free(self) -> None:
        """Give the memory of its buffers back; does not block."""
        self.values.free()
        self.columns.free()


def blocked_ell(a: SparseRef, block: int) -> BlockedEll:
    """Store a sparse matrix as Blocked-ELL, as `Ellify`; does not block.

    A dense one goes by `from_dense`. Each block is stored that has a stored value.

    Raises:
        InvalidArgument: it is no sparse matrix, or the blocks do not divide it.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("blocked_ell", "a", a)
    extent = plain(block)
    if a.format != "bsr" or a.values.shape[1:] != (extent, extent):
        a = a.tobsr((extent, extent))
    return _ellified(a, extent)


def ellify(a: SparseRef) -> BlockedEll:
    """Store a BSR matrix of square blocks as Blocked-ELL, as `Ellify`.

    It waits where only the device knows the extent of its blocks.

    Raises:
        InvalidArgument: it is no such matrix.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    a = require_sparse("Ellify", "a", a)
    return _ellified(a, a.values.shape[1] if a.format == "bsr" else 1)


def _ellified(a: SparseRef, extent: int) -> BlockedEll:
    parts = device_of(a.values).ask(Ellify(*a.parts, a.shape, a.format))
    return BlockedEll(a.shape, extent, *parts)


def unellify(a: BlockedEll) -> SparseRef:
    """Store a Blocked-ELL matrix as BSR, as `Unellify`; does not block.

    Raises:
        InvalidArgument: it is no such matrix.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    _require_ell("unellify", a)
    message = Unellify(a.values, a.columns, a.shape, a.block)
    parts = device_of(a.values).ask(message)
    return SparseRef("bsr", a.shape, a.columns.dtype, *parts)


def ell_matmul(a: BlockedEll, b: AccelRef) -> AccelRef:
    """Multiply a Blocked-ELL matrix and a dense one, as `EllMatmul`; does not block.

    Raises:
        InvalidArgument: the operands do not fit.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    _require_ell("ell_matmul", a)
    message = EllMatmul(a.values, a.columns, a.shape, a.block, b)
    return device_of(a.values).ask(message)


def _require_ell(what: str, a: object) -> None:
    if not isinstance(a, BlockedEll):
        text = f"{what}: a is {type(a).__name__}, and is to be a BlockedEll"
        raise InvalidArgument(f"{text}; sparse.blocked_ell(a, block) makes one")


__all__ = [
    "BlockedEll",
    "EllMatmul",
    "EllParts",
    "Ellify",
    "Unellify",
    "blocked_ell",
    "ell_matmul",
    "ellify",
    "unellify",
]
