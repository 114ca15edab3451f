"""General products, sums and norms: cuBLAS, and kernels for sums that make a new array.

One handle, on the stream that is active. Computation is in float32 for float16 and bfloat16,
else in the operands' own precision, in TF32 only if that is asked for, and partial sums are not
rounded to the narrow dtype. Atomic operations are not allowed, so that bits repeat. Counts from
2**31 on take cuBLAS's 64-bit entry points.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import cupy
import numpy as np
from nvmath.bindings import cublas

from accel_lab.backends.cuda.array.elementwise import update_kernel
from accel_lab.backends.cuda.blas.layout import matrices, product
from accel_lab.backends.cuda.blas.multiplication import Multiply, multiplication
from accel_lab.backends.cuda.blas.operands import Layout, addressable, as_column, layout
from accel_lab.backends.cuda.blas.precision import PRECISIONS, TF32
from accel_lab.backends.cuda.blas.strides import common_walk, dense_walk
from accel_lab.backends.cuda.blas.update import Update, UpdateName
from accel_lab.backends.cuda.handles.binding import HandleBinding
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.library import Axpy, Compute, Dot, Gemv, Nrm2, Product, Scal, Trans

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

Factor: TypeAlias = tuple[int, Any]
"""Where cuBLAS reads an alpha or beta during its call, and the array that holds it."""
How: TypeAlias = tuple[str, Trans, Trans, Compute]
"""The dtype of a product, how its operands are turned, and in what it is computed."""
Again: TypeAlias = Callable[[], object] | None

WORKSPACE_BYTES = 32 << 20  # what cuBLAS recommends on Hopper; given one, it allocates none
CACHE_LIMIT = 4096
_MATH_MODE = int(cublas.Math.DEFAULT_MATH | cublas.Math.DISALLOW_REDUCED_PRECISION_REDUCTION)
# For counts of 32 and of 64 bits; looked up here, so that a missing one is missed at once.
_AXPY = cublas.axpy_ex, cublas.axpy_ex_64
_SCAL = cublas.scal_ex, cublas.scal_ex_64
_DOT = cublas.dot_ex, cublas.dot_ex_64
_DOTC = cublas.dotc_ex, cublas.dotc_ex_64
_NRM2 = cublas.nrm2_ex, cublas.nrm2ex_64
_HOST, _DEVICE = int(cublas.PointerMode.HOST), int(cublas.PointerMode.DEVICE)


class CudaProducts:
    """Enqueues on the device's active stream; used by the dispatcher thread.

    What a product needs to be asked of cuBLAS depends on shapes and strides alone and is kept,
    so that a repeated product costs little more than the call.
    """

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._products: dict[Any, Multiply | None] = {}
        self._factors: dict[str, dict[Number | str, Factor]] = {dtype: {} for dtype in PRECISIONS}
        self._updates: dict[tuple[UpdateName, str], Update] = {}
        self._kernels: dict[tuple[UpdateName, str], Any] = {}
        self._workspace = cupy.ndarray((WORKSPACE_BYTES,), "B")
        self._handle: int = cublas.create()
        cublas.set_math_mode(self._handle, _MATH_MODE)
        # They do not know `self`: a cycle would keep the workspace of one that is replaced.
        put = partial(_put, self._handle, self._workspace.data.ptr)
        binding = HandleBinding(device, put, partial(_point, self._handle))
        self._bind, self._answers_on_device = binding.bind, binding.numbers_on_device
        self._forget_stream = binding.forget

    def lend(self) -> int:
        """Return the handle on the active stream, for the user's code.

        Without our workspace, which messages on another stream use meanwhile: to put a handle on a
        stream gives it one of cuBLAS's own.
        """
        self._forget_stream()
        cublas.set_stream(self._handle, self._device.active.ptr)
        return self._handle

    def take_back(self) -> None:
        """Set the handle as it was made; its stream and workspace come with the next call."""
        self._forget_stream()
        cublas.set_math_mode(self._handle, _MATH_MODE)
        _point(self._handle, False)  # noqa: FBT003 - as the vendor's mode

    def gemm(
        self, m: Product, a: Any, b: Any, c: Any, out: Any, alpha: Number, beta: Number
    ) -> None:
        """Write alpha op(a) @ op(b) + beta c (cublasGemmEx, cublasGemmStridedBatchedEx)."""
        how = m.a.dtype, m.trans_a, m.trans_b, m.compute
        if not alpha or not a.size or not out.size:
            self._update_only(c, out, how[0], beta)
        else:
            self._multiply(how, a, b, c, out, alpha, beta)

    gemm_strided_batched = gemm

    def _multiply(
        self, how: How, a: Any, b: Any, c: Any | None, out: Any, alpha: Number, beta: Number
    ) -> None:
        # `_c_contiguous` is ten times cheaper than `flags`, and a small product is all overhead.
        if a._c_contiguous and b._c_contiguous and out._c_contiguous:  # noqa: SLF001
            key: Any = (how, a.shape, b.shape)
        else:
            key = (how, layout(a), layout(b), layout(out))
        try:
            multiply = self._products[key]
        except KeyError:
            multiply = self._plan(key, (layout(a), layout(b), layout(out)), how)
        if multiply is None:
            self._multiply_copies(how, a, b, c, out, alpha, beta)
            return
        if c is not None and c is not out:
            enqueued = self._device.active.enqueuing()
            cupy.copyto(out, c)
            if enqueued is not None:
                enqueued()
        self._enqueue(multiply, (b, a, out), how[0], alpha, beta)

    def matmul(self, a: Any, b: Any, out: Any) -> None:
        """Write a @ b, of two stacks of as many matrices of one dtype."""
        if not a.size or not out.size:
            out.fill(0)
        else:
            self._multiply((a.dtype.name, "n", "n", ""), a, b, None, out, 1, 0)

    def gemv(self, m: Gemv, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha op(a) @ x + beta y, as the product with a matrix of one column."""
        if not alpha or not a.size or not out.size:
            self._update_only(y, out, m.a.dtype, beta)
        else:
            self._multiply_vector(m.a.dtype, m.trans, (a, x, y, out), alpha, beta)

    def _multiply_vector(
        self,
        dtype: str,
        trans: Trans,
        arrays: tuple[Any, Any, Any, Any],
        alpha: Number,
        beta: Number,
    ) -> None:
        a, x, y, out = arrays
        key = (dtype, trans, layout(a), x.strides, out.strides)
        how: How = (dtype, trans, "n", "")
        try:
            multiply = self._products[key]
        except KeyError:
            multiply = self._plan(key, (layout(a), as_column(x), as_column(out)), how)
        if multiply is None:
            column = out[:, None]
            added = None if y is None else column if y is out else y[:, None]
            self._multiply_copies(how, a, x[:, None], added, column, alpha, beta)
            return
        if y is not None and y is not out:
            enqueued = self._device.active.enqueuing()
            cupy.copyto(out, y)
            if enqueued is not None:
                enqueued()
        self._enqueue(multiply, (x, a, out), dtype, alpha, beta)

    def axpy(self, m: Axpy, x: Any, y: Any, out: Any, alpha: Number) -> None:
        """Write alpha x + y (cublasAxpyEx when `out` is `y`, a vector with gaps)."""
        dtype = m.x.dtype
        p = PRECISIONS[dtype]
        # cuBLAS would copy y first, and it skips infinities and NaNs where alpha is 0. Where there
        # are no gaps, our own kernel takes less to launch.
        walk = None
        if out is y and alpha != 0 and not (x._c_contiguous and y._c_contiguous):  # noqa: SLF001
            walk = common_walk(x, y, itemsize=p.itemsize)
        if walk is None:
            self._update("axpy", (x, y, out), dtype, alpha)
            return
        if not x.size:
            return
        self._bind()
        at_alpha, _held = self._factor(dtype, alpha)
        each_x = (x.data.ptr, p.element, walk.steps[0])
        each_y = (y.data.ptr, p.element, walk.steps[1])
        _AXPY[walk.wide](self._handle, x.size, at_alpha, p.factor, *each_x, *each_y, p.factor)

    def scal(self, m: Scal, x: Any, out: Any, alpha: Number) -> None:
        """Write alpha x (cublasScalEx when `out` is `x`, a vector with gaps)."""
        self._scale(m.x.dtype, x, out, alpha)

    def _scale(self, dtype: str, x: Any, out: Any, alpha: Number) -> None:
        p = PRECISIONS[dtype]
        walk = None
        if out is x and alpha != 0 and not x._c_contiguous:  # noqa: SLF001
            walk = common_walk(x, itemsize=p.itemsize)
        if walk is None:
            self._update("scal", (x, x, out), dtype, alpha)
            return
        if not x.size:
            return
        self._bind()
        at_alpha, _held = self._factor(dtype, alpha)
        each_x = (x.data.ptr, p.element, walk.steps[0])
        _SCAL[walk.wide](self._handle, x.size, at_alpha, p.factor, *each_x, p.factor)

    def dot(self, m: Dot, x: Any, y: Any, out: Any) -> None:
        """Write the sum of products into 0-d `out` (cublasDotEx, cublasDotcEx)."""
        if not x.size:
            out.fill(0)
            return
        p = PRECISIONS[m.x.dtype]
        walk = common_walk(x, y, itemsize=p.itemsize)
        if walk is None:
            x, y = cupy.ascontiguousarray(x), cupy.ascontiguousarray(y)
            walk = dense_walk(x, y)
        dot = (_DOTC if m.conjugate and p.is_complex else _DOT)[walk.wide]
        each_x = (x.data.ptr, p.element, walk.steps[0])
        each_y = (y.data.ptr, p.element, walk.steps[1])
        with self._answers_on_device():
            dot(self._handle, x.size, *each_x, *each_y, out.data.ptr, p.element, p.factor)

    def nrm2(self, m: Nrm2, x: Any, out: Any) -> None:
        """Write the norm of all elements into 0-d `out` (cublasNrm2Ex)."""
        if not x.size:
            out.fill(0)
            return
        p = PRECISIONS[m.x.dtype]
        walk = common_walk(x, itemsize=p.itemsize)
        if walk is None:
            x = cupy.ascontiguousarray(x)
            walk = dense_walk(x)
        each_x = (x.data.ptr, p.element, walk.steps[0])
        with self._answers_on_device():
            _NRM2[walk.wide](self._handle, x.size, *each_x, out.data.ptr, p.real, p.real_factor)

    def close(self) -> None:
        """Destroy the handle; waits for the device."""
        # A handle that cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(cublas.cuBLASError):
            cublas.destroy(self._handle)

    def _plan(self, key: Any, layouts: tuple[Layout, Layout, Layout], how: How) -> Multiply | None:
        """Find out, once, how to ask cuBLAS for a product; None when operands must be copied."""
        dtype, *trans, compute = how
        p = PRECISIONS[dtype] if not compute else PRECISIONS[dtype]._replace(compute=TF32)
        trans_a, trans_b = ("t" if t == "c" and not p.is_complex else t for t in trans)
        found = product(*layouts, itemsize=p.itemsize, trans_a=trans_a, trans_b=trans_b)
        if len(self._products) >= CACHE_LIMIT:
            self._products.clear()
        call = self._products[key] = found and multiplication(self._handle, found, p)
        return call

    def _multiply_copies(
        self, how: How, a: Any, b: Any, c: Any | None, out: Any, alpha: Number, beta: Number
    ) -> None:
        """Multiply with a contiguous copy of each operand that cuBLAS cannot address."""
        self._device.active.enqueuing()
        dtype, trans_a, trans_b, _ = how
        complex_ = PRECISIONS[dtype].is_complex
        a = addressable(a, conjugated=complex_ and trans_a == "c")
        b = addressable(b, conjugated=complex_ and trans_b == "c")
        found = matrices(*layout(out), out.itemsize)
        direct = found is not None and found.by_rows
        target = out if direct else cupy.ndarray(out.shape, out.dtype)
        if c is not None and c is not target:
            cupy.copyto(target, c)
            c = target
        self._multiply(how, a, b, c, target, alpha, beta)
        if not direct:
            cupy.copyto(out, target)

    def _enqueue(
        self,
        multiply: Multiply,
        operands: tuple[Any, Any, Any],
        dtype: str,
        alpha: Number,
        beta: Number,
    ) -> None:
        b, a, out = operands
        enqueued = self._device.active.enqueuing()
        if isinstance(alpha, cupy.ndarray):  # so is beta
            at_beta = beta.data.ptr  # type: ignore[union-attr]
            with self._answers_on_device():
                multiply(alpha.data.ptr, b.data.ptr, a.data.ptr, at_beta, out.data.ptr)
            if enqueued is not None:
                enqueued()
            return
        self._bind()
        known = self._factors[dtype]
        first = known.get(alpha) or self._factor(dtype, alpha)
        second = known.get(beta) or self._factor(dtype, beta)
        multiply(first[0], b.data.ptr, a.data.ptr, second[0], out.data.ptr)
        if enqueued is not None:
            enqueued()

    def _update_only(self, c: Any | None, out: Any, dtype: str, beta: Number) -> None:
        """Write beta c: the product counts for nothing.

        cuBLAS says so of an alpha of 0, too, but some of its kernels in half precision do not.
        """
        if not out.size:
            return
        self._device.active.enqueuing()
        if c is None:
            out.fill(0)
            return
        if c is not out:
            cupy.copyto(out, c)
        self._scale(dtype, out, out, beta)

    def _factor(self, dtype: str, value: Number) -> Factor:
        """Return an alpha or beta in host memory; keep the result until cuBLAS's call returns."""
        known = self._factors[dtype]
        zero = "" if value else repr(value)  # -0.0 is equal to 0.0, and another factor
        key = zero if "-" in zero else value
        factor = known.get(key)
        if factor is None:
            if len(known) >= CACHE_LIMIT:
                known.clear()
            held = np.array([PRECISIONS[dtype].scalar(value)])
            factor = known[key] = (held.ctypes.data, held)
        return factor

    def axpy_again(self, m: Axpy, x: Any, y: Any, out: Any, alpha: Number) -> Again:
        """Return a launch of our own kernel with these arguments, where that does it."""
        return self._update_again("axpy", (x, y, out), m.x.dtype, alpha)

    def scal_again(self, m: Scal, x: Any, out: Any, alpha: Number) -> Again:
        """Return a launch of our own kernel with these arguments, where that does it."""
        return self._update_again("scal", (x, x, out), m.x.dtype, alpha)

    def _update_again(
        self, name: UpdateName, arrays: tuple[Any, Any, Any], dtype: str, alpha: Number
    ) -> Again:
        x, y, out = arrays
        update = self._updates.get((name, dtype))
        dense = x._c_contiguous and y._c_contiguous and out._c_contiguous  # noqa: SLF001 - as above
        if update is None or not dense or not out.size:
            return None
        at_alpha, held = self._factor(dtype, alpha)
        return update.again(x, y, out, at_alpha, held, self._device.active.ptr)

    def _update(
        self, name: UpdateName, arrays: tuple[Any, Any, Any], dtype: str, alpha: Number
    ) -> None:
        """Enqueue a sum with a kernel of our own where (x, y, out) are dense, else with CuPy's."""
        x, y, out = arrays
        if x._c_contiguous and y._c_contiguous and out._c_contiguous:  # noqa: SLF001 - as above
            update = self._updates.get((name, dtype))
            if update is None:
                update = self._updates[name, dtype] = Update(name, dtype)
            at_alpha, _held = self._factor(dtype, alpha)
            stream = self._device.active
            enqueued = stream.enqueuing()
            update(x, y, out, at_alpha, stream.ptr)
            if enqueued is not None:
                enqueued()
            return
        kernel = self._kernels.get((name, dtype))
        if kernel is None:
            kernel = self._kernels[name, dtype] = update_kernel(name, dtype)
        operands = (x, y) if name == "axpy" else (x,)
        kernel(*operands, PRECISIONS[dtype].scalar(alpha), out)


def _put(handle: int, workspace: int, stream: int) -> None:
    """Put the handle on a stream."""
    cublas.set_stream(handle, stream)
    # cublasSetStream goes back to a workspace of cuBLAS's own.
    cublas.set_workspace(handle, workspace, WORKSPACE_BYTES)


def _point(handle: int, on_device: bool) -> None:  # noqa: FBT001 - as the vendor's mode
    """Say where cuBLAS reads factors and writes answers."""
    cublas.set_pointer_mode(handle, _DEVICE if on_device else _HOST)
