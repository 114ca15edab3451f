"""Products that finish in one pass: cuBLASLt, and step by step where it has no such product.

That is so for epilogues of float64 and int32, for int8 that becomes floats, for float8 that becomes
float32 with a bias, and for shapes and strides that no algorithm takes. Which algorithm does a
product is found once, and kept on disk.
"""

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import cupy
from cupy.cuda import runtime
from nvmath.bindings import cublasLt

from accel_lab.backends.cuda.array.narrow import store, widened
from accel_lab.backends.cuda.blas_lt.algorithms import Algorithm, Algorithms
from accel_lab.backends.cuda.blas_lt.asking import Ask, ask_of, asked
from accel_lab.backends.cuda.blas_lt.call import Call
from accel_lab.backends.cuda.blas_lt.plan import WORKSPACE_BYTES, LtPlan
from accel_lab.backends.cuda.blas_lt.tuning import LtHandle, measured
from accel_lab.backends.cuda.handles.fences import StreamFences
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.machine.disk_cache import cache_folder
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.authoring.plan_cache import PlanCache
from accel_lab.libraries.blas_lt.epilogue import activated
from accel_lab.libraries.blas_lt.evaluation import (
    FusedOperands,
    Parts,
    combined,
    computed_in,
    evaluate,
)
from accel_lab.libraries.blas_lt.fused import FLOAT8
from accel_lab.libraries.blas_lt.library import (
    FusedMatmul,
    Matmul,
    Tune,
    Tuned,
)

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

PLAN_LIMIT = 1024


class CudaBlasLt:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._workspace: Any = None  # many contexts never need it
        self._handle: int = cublasLt.create()
        card = runtime.getDeviceProperties(device.index)["name"].decode()
        folder = cache_folder() / "cuda-blas-lt"
        self._algorithms = Algorithms(folder, card, cublasLt.get_version())
        # It does not know `self`: a cycle would keep the workspace of one that is replaced.
        self._plans: PlanCache[LtPlan] = PlanCache(
            partial(_planned, self._handle, self._algorithms),
            StreamFences(device),
            most=PLAN_LIMIT,
            most_bytes=1,
        )
        self._asked_for = self._in_steps = 0

    def lend(self) -> int:
        """Return the handle, for the user's code; it has no stream and no modes."""
        return self._handle

    def take_back(self) -> None:
        """Do nothing: its calls say all."""

    def matmul(
        self, m: Matmul, a: Any, b: Any, c: Any, bias: Any, out: Any, alpha: Number, beta: Number
    ) -> None:
        """Write activation(alpha op(a) @ op(b) + beta c + bias) (cublasLtMatmul)."""
        if not out.size:
            return
        dtype = m.a.dtype
        counts = bool(alpha) and a.size > 0
        ask = Ask(
            m.epilogue,
            (dtype,) * 4,
            (m.trans_a != "n", m.trans_b != "n"),
            a,
            b,
            c,
            out,
            (alpha, beta),
            bias=None if bias is None else cupy.ascontiguousarray(bias),
            bias_dtype=dtype,
            compute=m.compute,
        )
        if counts and self._run(ask):
            return
        wide = computed_in(dtype, dtype)
        product = self._product(ask, wide) if counts else cupy.zeros(out.shape, wide)
        added, biased = widened(c, dtype, wide), widened(bias, dtype, wide)
        value = combined(product, alpha, added, beta, biased)
        store(activated(cupy, m.activation, value), out, dtype)

    def fused_matmul(
        self,
        m: FusedMatmul,
        x: FusedOperands,
        out: Parts,
        factors: tuple[Number, Number],
    ) -> None:
        """Write what the message asks for (cublasLtMatmul)."""
        counts = bool(factors[0]) and x.a.size > 0 and out.d.size > 0
        ask = ask_of(m, x, out, factors)
        # Nothing says whether it would sum op(a) before its scale or after.
        scaled = x.scale_a is not None or x.scale_b is not None
        summed = scaled and m.bias_gradient in ("a", "b")
        if counts and not summed and self._run(ask):
            self._rest(m, ask, out)
        else:
            self._in_order(m, ask, x, out, counts=counts)

    def measure(
        self, m: Tune, x: FusedOperands, factors: tuple[Number, Number], worker: Worker
    ) -> tuple[Call | None, Algorithm | None, Tuned]:
        """Return the fastest algorithm of a product, and what was measured; blocks the worker."""
        handle = worker.handle(LtHandle)
        ask = ask_of(m, x, _results(m), factors)
        if not factors[0] or not x.a.size or not ask.d.size:
            return None, None, Tuned(0, 0.0, 0.0)
        return measured(handle.ptr, asked(ask), factors, worker)

    def keep(self, call: Call | None, algorithm: Algorithm | None) -> None:
        """Have what was measured do the product from now on, in this process and later ones."""
        if call is not None and algorithm is not None:
            self._algorithms.put(call, algorithm)
            self._plans.use(call).choose(algorithm)

    def statistics(self) -> Mapping[str, int]:
        """Count plans, algorithms, calls of cuBLASLt and products finished in steps; any thread."""
        counted = {"algorithms": len(self._algorithms), "by cuBLASLt": self._asked_for}
        return {**self._plans.statistics(), **counted, "in steps": self._in_steps}

    def trim(self) -> None:
        """Give the workspace back, and every plan; waits for the device."""
        runtime.deviceSynchronize()  # another library may have asked for room, on its stream
        self._workspace = None
        self._plans.close()

    def close(self) -> None:
        """Save what was found, and destroy plans and handle; waits for the device."""
        self._algorithms.save()
        # What cannot be waited for or destroyed belongs to a lost context, as the next call tells.
        with contextlib.suppress(runtime.CUDARuntimeError, cublasLt.cuBLASLtError):
            self._plans.close()
            cublasLt.destroy(self._handle)

    def _run(self, ask: Ask) -> bool:
        """Enqueue a product, if cuBLASLt has it; return whether it has."""
        if not _is_exact(ask):
            return False
        enqueued = self._device.active.enqueuing()
        found = asked(ask)
        plan = self._plans.use(found.call)
        if plan.algorithm is None:
            return False
        if self._workspace is None:
            self._workspace = cupy.ndarray((WORKSPACE_BYTES,), "B")
        plan.run(found.at, ask.factors, self._workspace.data.ptr, self._device.active.ptr)
        if enqueued is not None:
            enqueued()
        if found.target is not ask.d:
            cupy.copyto(ask.d, found.target)
        self._asked_for += 1
        return True

    def _rest(self, m: FusedMatmul, ask: Ask, out: Parts) -> None:
        """Write what cuBLASLt wrote elsewhere, or does not write itself."""
        if m.keep_aux and ask.aux is not out.aux:
            cupy.copyto(out.aux, ask.aux[:, : out.aux.shape[1]])
        if m.bias_gradient and ask.bias is not out.bias_gradient:
            cupy.copyto(out.bias_gradient, ask.bias)
        if out.amax is not None and m.made_dtype not in FLOAT8:
            wide = widened(out.d, m.made_dtype, computed_in(m.a.dtype, m.made_dtype))
            out.amax[...] = cupy.abs(wide).max()

    def _product(self, ask: Ask, wide: str) -> Any:
        """Return op(a) @ op(b) in the dtype that is computed in; of int8 exactly."""
        dtype_a, dtype_b, *_ = ask.dtypes
        made = "int32" if dtype_a == "int8" else wide
        product = cupy.ndarray(ask.d.shape, made)
        dtypes = (dtype_a, dtype_b, made, made)
        plain = Ask("DEFAULT", dtypes, ask.turned, ask.a, ask.b, None, product, (1, 0))
        plain = plain._replace(compute=ask.compute)
        self._in_steps += 1
        if not self._run(plain):
            held = "float64" if dtype_a == "int8" else wide
            left = turned(widened(ask.a, dtype_a, held), turns=ask.turned[0])
            right = turned(widened(ask.b, dtype_b, held), turns=ask.turned[1])
            product = cupy.matmul(left, right)
            if dtype_a == "int8":
                product = product.astype("int64").astype("int32")
        return product.astype(wide, copy=False)

    def _in_order(
        self, m: FusedMatmul, ask: Ask, x: FusedOperands, out: Parts, *, counts: bool
    ) -> None:
        """Write what the message asks for, one step after the other."""
        made = m.made_dtype
        wide, beside = computed_in(m.a.dtype, made), ask.bias_dtype
        product = self._product(ask, wide) if counts else cupy.zeros(out.d.shape, wide)
        summed = m.bias_gradient in ("a", "b")
        given = x._replace(
            a=turned(widened(x.a, m.a.dtype, wide), turns=ask.turned[0]) if summed else None,
            b=turned(widened(x.b, m.b.dtype, wide), turns=ask.turned[1]) if summed else None,
            c=widened(x.c, beside, wide),
            bias=widened(x.bias, beside, wide),
            aux=x.aux if m.activation == "relu" else widened(x.aux, beside, wide),
        )
        found = evaluate(cupy, m, product, given, ask.factors)
        kept = "uint8" if m.activation == "relu" else beside
        dtypes = (made, kept, beside, "float32")
        for value, to, dtype in zip(found, out, dtypes, strict=True):
            if to is not None:
                store(value, to, dtype)


def turned(x: Any, *, turns: bool) -> Any:
    """Return op(x); no dtype here is complex."""
    return x.swapaxes(-1, -2) if turns else x


def _is_exact(ask: Ask) -> bool:
    """Whether what cuBLASLt would do is what is asked for, as was seen on an H100.

    Its GELU of float64 has constants of single precision; beside float8 that becomes float32 it
    reads a bias as bfloat16.
    """
    dtype_a, *_, made = ask.dtypes
    rough = made == "float64" and "GELU" in ask.epilogue
    misread = dtype_a in FLOAT8 and ask.bias is not None and made == "float32"
    return not (rough or misread)


def _planned(handle: int, algorithms: Algorithms, call: Call) -> LtPlan:
    """Make the plan of a call, with the algorithm that is known, or the library's first."""
    plan = LtPlan(handle, call)
    known = algorithms.get(call)
    if known is not None and plan.takes(known):
        plan.choose(known)
        return plan
    if known is not None:
        algorithms.drop(call)
    for first in plan.candidates(1):
        plan.choose(first)
        algorithms.put(call, first)
    return plan


def _results(m: Tune) -> Parts:
    """Allocate what a product would write."""
    bits = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
    arrays = [
        None if one is None else cupy.zeros(one.shape, bits.get(one.dtype, one.dtype))
        for one in m.makes()
    ]
    return Parts(*arrays)
