"""cuSPARSE's handle on the active stream, and descriptors that last for one call.

cuSPARSE reads a descriptor during the call alone, so each is destroyed behind it. Every matrix is
given to it by compressed rows: one of another format is first brought into that on the device.
"""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import cupy
from nvmath.bindings import cusparse

from accel_lab.backends.cuda.handles.binding import HandleBinding
from accel_lab.backends.cuda.sparse.values import VALUES
from accel_lab.backends.sparse_structure import packed, unpacked
from accel_lab.libraries.sparse.matrix import Format, Shape, Trans

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

AS_IT_IS = int(cusparse.Operation.NON_TRANSPOSE)
_INDEX_TYPES = {
    "int32": int(cusparse.IndexType.INDEX_32I),
    "int64": int(cusparse.IndexType.INDEX_64I),
}
_BASE = int(cusparse.IndexBase.ZERO)
_ROW = int(cusparse.Order.ROW)
_NUMBERS_ON_HOST = 0  # CUSPARSE_POINTER_MODE_HOST


class Rows(NamedTuple):
    """A matrix by compressed rows."""

    shape: Shape
    values: Any
    indices: Any
    pointers: Any


def by_rows(format_: Format, shape: Shape, parts: tuple[Any, Any, Any], trans: Trans) -> Rows:
    """Return op(matrix) by compressed rows; nothing waits.

    CSC is CSR of the transposed matrix. What is not yet by the rows of op(matrix) is sorted:
    cuSPARSE's own transposed products add up in another order each time, and a message that runs
    again is to have the same bits.
    """
    values, indices, pointers = (cupy.ascontiguousarray(one) for one in parts)
    turns = trans != "n"
    made = shape[::-1] if turns else shape
    wanted: Format = "csc" if turns else "csr"
    if format_ != wanted:
        stored = unpacked(cupy, format_, values, indices, pointers)
        values, indices, pointers = packed(cupy, wanted, shape, stored)
    if trans == "c" and values.dtype.kind == "c":
        values = values.conj()
    return Rows(made, values, indices, pointers)


class Calls:
    """One handle of cuSPARSE; for the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self.handle: int = cusparse.create()
        binding = HandleBinding(device, partial(cusparse.set_stream, self.handle))
        self.bind, self._forget_stream = binding.bind, binding.forget

    def lend(self) -> int:
        """Return the handle on the active stream, for the user's code."""
        self.bind()
        return self.handle

    def take_back(self) -> None:
        """Set it as it was made; its stream comes with the next call."""
        self._forget_stream()
        cusparse.set_pointer_mode(self.handle, _NUMBERS_ON_HOST)

    def close(self) -> None:
        """Destroy the handle."""
        # A handle that cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(cusparse.cuSPARSEError):
            cusparse.destroy(self.handle)


@contextlib.contextmanager
def sparse_matrix(a: Rows, dtype: str) -> Iterator[int]:
    """Describe a matrix by compressed rows."""
    index = _INDEX_TYPES[str(a.indices.dtype)]
    places = a.pointers.data.ptr, a.indices.data.ptr, a.values.data.ptr
    made = cusparse.create_csr(
        *a.shape, a.values.size, *places, index, index, _BASE, VALUES[dtype].element
    )
    try:
        yield made
    finally:
        cusparse.destroy_sp_mat(made)


@contextlib.contextmanager
def dense_vector(x: Any, dtype: str) -> Iterator[int]:
    """Describe a contiguous vector."""
    made = cusparse.create_dn_vec(x.size, x.data.ptr, VALUES[dtype].element)
    try:
        yield made
    finally:
        cusparse.destroy_dn_vec(made)


@contextlib.contextmanager
def dense_matrix(x: Any, dtype: str) -> Iterator[int]:
    """Describe a C-contiguous matrix."""
    rows, columns = x.shape
    made = cusparse.create_dn_mat(
        rows, columns, max(1, columns), x.data.ptr, VALUES[dtype].element, _ROW
    )
    try:
        yield made
    finally:
        cusparse.destroy_dn_mat(made)
