"""CuPy's sparse matrices over buffers; for work beside the dispatcher, as making one waits."""

from typing import Any

import cupy
from cupy.cuda import device
from cupy_backends.cuda.libs import cusparse
from cupyx.scipy.sparse import csr_matrix

from accel_lab.errors import InvalidArgument
from accel_lab.libraries.sparse.matrix import Shape

Arrays = tuple[Any, Any, Any]
_MOST = 2**31 - 1


def bound_handle() -> int:
    """Return cuSPARSE's handle of this thread, on the thread's current stream.

    Not every call of CuPy's seems to bind it: SpGEMM and SpSM would run where the call before was.
    """
    handle: int = device.get_cusparse_handle()
    cusparse.setStream(handle, cupy.cuda.get_current_stream().ptr)
    return handle


def by_rows(shape: Shape, values: Any, indices: Any, pointers: Any) -> Any:
    """Return CuPy's matrix of a canonical one by compressed rows."""
    arrays = tuple(cupy.ascontiguousarray(one) for one in (values, indices, pointers))
    made = csr_matrix(arrays, shape=shape)
    made.has_canonical_format = True
    return made


def in_32_bits(what: str, shape: Shape, values: Any, indices: Any, pointers: Any) -> Arrays:
    """Return a matrix with 32-bit indices, in which some of the vendor's solvers count.

    Raises:
        InvalidArgument: they do not suffice.
    """
    if max(*shape, values.size) > _MOST:
        raise InvalidArgument(f"{what}: cuda counts in 32 bits here, and the matrix is larger")
    return values, indices.astype("int32"), pointers.astype("int32")
