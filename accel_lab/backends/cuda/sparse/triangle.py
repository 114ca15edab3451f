"""A sparse triangle that is analysed once and solved with often: cuSPARSE's SpSM.

It is called through CuPy, whose handle is this thread's and goes with its current stream.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.libs import cusparse

from accel_lab.backends.cuda.sparse.matrices import Arrays, bound_handle
from accel_lab.backends.cuda.sparse.values import VALUES
from accel_lab.backends.sparse_structure import packed, unpacked
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.sparse.matrix import Trans, Uplo

_INDEX_TYPES = {"int32": cusparse.CUSPARSE_INDEX_32I, "int64": cusparse.CUSPARSE_INDEX_64I}
_BASE, _AS_IT_IS = cusparse.CUSPARSE_INDEX_BASE_ZERO, cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE
_FILLS = {"l": cusparse.CUSPARSE_FILL_MODE_LOWER, "u": cusparse.CUSPARSE_FILL_MODE_UPPER}
_DIAGONALS = {True: cusparse.CUSPARSE_DIAG_TYPE_UNIT, False: cusparse.CUSPARSE_DIAG_TYPE_NON_UNIT}


@contextlib.contextmanager
def triangle(
    parts: Arrays,
    columns: int,
    *,
    uplo: Uplo = "l",
    trans: Trans = "n",
    unit: bool = False,
    alpha: Number = 1,
) -> Iterator[Callable[[Any], Any]]:
    """Analyse a triangle of a CSR matrix; give what solves op(a) @ x = alpha b.

    It takes `b` of so many columns, and returns an array that its next call overwrites.
    """
    if trans != "n":  # cuSPARSE's own way for it adds up in another order each time
        parts, uplo = _turned(parts, trans), "u" if uplo == "l" else "l"
    values, indices, pointers = (cupy.ascontiguousarray(one) for one in parts)
    order, dtype = pointers.size - 1, values.dtype
    element, index = VALUES[str(dtype)].element, _INDEX_TYPES[str(indices.dtype)]
    handle, factor = bound_handle(), np.array(alpha, dtype)
    given, made = (cupy.zeros((columns, order), dtype) for _ in range(2))  # by columns
    with contextlib.ExitStack() as stack:
        places = pointers.data.ptr, indices.data.ptr, values.data.ptr
        a = cusparse.createCsr(order, order, values.size, *places, index, index, _BASE, element)
        stack.callback(cusparse.destroySpMat, a)
        b, x = (
            cusparse.createDnMat(
                order, columns, order, one.data.ptr, element, cusparse.CUSPARSE_ORDER_COL
            )
            for one in (given, made)
        )
        stack.callback(cusparse.destroyDnMat, b)
        stack.callback(cusparse.destroyDnMat, x)
        cusparse.spMatSetAttribute(a, cusparse.CUSPARSE_SPMAT_FILL_MODE, _FILLS[uplo])
        cusparse.spMatSetAttribute(a, cusparse.CUSPARSE_SPMAT_DIAG_TYPE, _DIAGONALS[unit])
        plan = cusparse.spSM_createDescr()
        stack.callback(cusparse.spSM_destroyDescr, plan)
        what = _AS_IT_IS, _AS_IT_IS, factor.ctypes.data, a, b, x, element
        how = (handle, *what, cusparse.CUSPARSE_SPSM_ALG_DEFAULT, plan)
        space = cupy.empty(cusparse.spSM_bufferSize(*how), "b")
        cusparse.spSM_analysis(*how, space.data.ptr)

        def solve(right: Any) -> Any:
            cupy.copyto(given, right.reshape(order, columns).T)
            made.fill(0)  # as cuSPARSE wants it
            cusparse.spSM_solve(*how, space.data.ptr)
            return made.T.reshape(right.shape) if right.ndim > 1 else made.reshape(order)

        yield solve


def _turned(parts: Arrays, trans: Trans) -> Arrays:
    """Return the transposed matrix, or the adjoint; its columns are this one's rows."""
    order = parts[2].size - 1
    made = packed(cupy, "csc", (order, order), unpacked(cupy, "csr", *parts))
    return (made[0].conj() if trans == "c" else made[0], *made[1:])
