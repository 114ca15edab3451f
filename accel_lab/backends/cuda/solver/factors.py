"""QR by CuPy, LU and Cholesky by cuSOLVER, and stacks of small matrices by batched routines."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from nvmath.bindings import cublas, cusolverDn

from accel_lab.backends.cuda.handles.binding import HandleBinding
from accel_lab.backends.cuda.solver.columns import (
    by_columns,
    no_errors,
    place,
    places,
    rows_of,
    write,
)
from accel_lab.backends.cuda.solver.handle import (
    SolverHandle,
    plain_routines,
    type_of,
    wide_routine,
)
from accel_lab.libraries.solver.library import Cholesky, Lu, Qr

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

STACK_LIMIT = 256
"""Up to this extent a stack is one call, which is made for many small matrices."""

_GETRF, _POTRF = wide_routine("xgetrf"), wide_routine("xpotrf")
_GETRS = cusolverDn.xgetrs
_GETRF_STACK = plain_routines("getrf_batched", cublas)
_GETRS_STACK = plain_routines("getrs_batched", cublas)
_POTRF_STACK = plain_routines("potrf_batched")
_FILL_LOWER, _FILL_UPPER = 0, 1  # cublasFillMode_t


class CudaFactors:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._solver: SolverHandle | None = None
        self._stacks = 0
        self._solver_binding: HandleBinding | None = None
        self._bind_stacks: Callable[[], None] = lambda: None

    def close(self) -> None:
        """Destroy the handles; waits for the device."""
        if self._solver is not None:
            self._solver.close()
        if self._stacks:
            # As of cuSOLVER's: what a lost context has, the next call tells.
            with contextlib.suppress(cublas.cuBLASError):
                cublas.destroy(self._stacks)

    # A handle is made when it is first needed: it takes memory of the device, and time.

    def _own_solver(self) -> SolverHandle:
        """Return cuSOLVER's handle on the active stream."""
        if self._solver is None:
            self._solver = SolverHandle(self._device.active)
            self._solver_binding = HandleBinding(self._device, self._solver.put)
        assert self._solver_binding is not None
        self._solver_binding.bind()
        return self._solver

    def lend(self) -> int:
        """Return cuSOLVER's handle on the active stream, for the user's code."""
        return self._own_solver().handle

    def take_back(self) -> None:
        """Have its stream set anew."""
        if self._solver_binding is not None:
            self._solver_binding.forget()

    def _own_stacks(self) -> int:
        """Return cuBLAS's handle, which has LU of stacks, on the active stream."""
        if not self._stacks:
            self._stacks = cublas.create()
            put = partial(cublas.set_stream, self._stacks)
            self._bind_stacks = HandleBinding(self._device, put).bind
        self._bind_stacks()
        return self._stacks

    def qr(self, m: Qr, a: Any, out: Any) -> None:
        """Write the factors (cupy.linalg.qr: geqrf and orgqr)."""
        a = cupy.ascontiguousarray(a)
        if out.q is not None:
            q, r = cupy.linalg.qr(a, "complete" if m.complete else "reduced")
            cupy.copyto(out.q, q)
        else:
            r = cupy.linalg.qr(a, "r")
        # Without vectors there are the first rows alone, and below these are zeros. So they are in
        # a complete one, which CuPy leaves unwritten where there are no columns.
        out.r.fill(0)
        rows = min(a.shape[-2:])
        cupy.copyto(out.r[..., :rows, :], r[..., :rows, :])

    def lu(self, _: Lu, a: Any, out: Any) -> Any:
        """Write the factors and return where a pivot is 0 (cusolverDnXgetrf)."""
        stack = a.shape[:-2]
        if not a.size:
            return no_errors(stack)
        held, pivots, info = self._factored(a)
        write(out.lu, rows_of(held))
        write(out.pivots, pivots - 1)  # cuSOLVER counts from 1
        return info.reshape(stack)

    def cholesky(self, m: Cholesky, a: Any, out: Any) -> Any:
        """Write the factor and return which minor is not positive (cusolverDnXpotrf)."""
        stack = a.shape[:-2]
        if not a.size:
            return no_errors(stack)
        handle, held = self._own_solver(), by_columns(a)
        info = no_errors((len(held),))
        n, fill = a.shape[-1], _FILL_LOWER if m.lower else _FILL_UPPER
        if len(held) > 1 and n <= STACK_LIMIT:
            at = places(held)
            args = fill, n, at.data.ptr, n, info.data.ptr, len(held)
            _POTRF_STACK[a.dtype.char](handle.handle, *args)
        else:
            for i in range(len(held)):
                of = fill, n, type_of(a), place(held, i), n, type_of(a)
                handle.call(_POTRF, of, of, place(info, i))
        half = rows_of(held)
        half = cupy.tril(half) if m.lower else cupy.triu(half)
        write(out, half)
        # A NaN is never positive; whether cuSOLVER says so is not documented.
        wrong = ~cupy.isfinite(cupy.diagonal(half, axis1=-2, axis2=-1))
        order = cupy.where(wrong.any(axis=-1), wrong.argmax(axis=-1) + 1, 0).astype(np.int32)
        return cupy.where(info == 0, order, info).reshape(stack)

    def _factored(self, a: Any) -> tuple[Any, Any, Any]:
        """Return LU factors held by columns, pivots counted from 1, and a status for each."""
        held = by_columns(a)
        count, n, rows = held.shape
        pivots = cupy.zeros((count, min(rows, n)), np.int64)
        info = no_errors((count,))
        if count > 1 and rows == n <= STACK_LIMIT:
            narrow, at = cupy.zeros((count, n), np.int32), places(held)
            args = n, at.data.ptr, n, narrow.data.ptr, info.data.ptr, count
            _GETRF_STACK[a.dtype.char](self._own_stacks(), *args)
            return held, narrow.astype(np.int64), info
        handle, kind = self._own_solver(), type_of(a)
        for i in range(count):
            one = rows, n, kind, place(held, i), rows
            all_of_it = (*one, place(pivots, i), kind)
            handle.call(_GETRF, (*one, kind), all_of_it, place(info, i))
        return held, pivots, info

    def _apply(self, lu: Any, pivots: Any, right: Any, trans: int = 0) -> None:
        """Solve in place for right sides held by columns; one LU serves all that there are."""
        count, n = len(lu), lu.shape[-1]
        if not right.size:
            return
        if count == 1:  # all right sides are columns of one
            right = right.reshape(1, -1, n)
        columns = right.shape[1]
        if count > 1 and n <= STACK_LIMIT:
            narrow, refused = pivots.astype(np.int32), np.zeros(1, np.int32)
            at_lu, at_right = places(lu), places(right)
            args = (trans, n, columns, at_lu.data.ptr, n, narrow.data.ptr, at_right.data.ptr, n)
            run = _GETRS_STACK[lu.dtype.char]
            run(self._own_stacks(), *args, refused.ctypes.data, count)
            return
        handle, kind, info = self._own_solver(), type_of(lu), no_errors((1,))
        for i in range(count):
            factors = trans, n, columns, kind, place(lu, i), n, place(pivots, i)
            handle.call_plain(_GETRS, *factors, kind, place(right, i), n, info.data.ptr)
