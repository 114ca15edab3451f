"""Tensors on cuda: contractions by cuTENSOR or by cuBLAS's products, the rest by CuPy's kernels."""

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import cupy
from cupy.cuda import runtime

from accel_lab.backends.cuda.array.narrow import store, widened
from accel_lab.backends.cuda.tensor.cutensor import Cutensor, installed
from accel_lab.compute.execution.worker import Worker
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.tensor import evaluation
from accel_lab.libraries.tensor.library import Binary, Contract, Permute, Reduce, Trinary, Tune
from accel_lab.libraries.tensor.message import computed_in
from accel_lab.libraries.tensor.path import Step, statistics, steps_of
from accel_lab.libraries.tensor.tuning import RUNS, Tuned, tuned

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice


class CudaTensor:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._cutensor: Cutensor | None = None
        self._is_looked_for = False
        self._contracted = {"by cuTENSOR": 0, "by cuBLAS": 0}

    def contract(self, m: Contract, tensors: tuple[Any, ...], out: Any, alpha: Number) -> None:
        """Write the sum of products (cutensorContract, or cupy.matmul), two after the other."""
        if not out.size:
            return
        self._device.active.enqueuing()
        dtype = m.tensors[0].dtype
        wide = computed_in(dtype, m.compute)
        steps = steps_of(m.subscripts, tuple([x.shape for x in tensors]), m.optimize)
        held = [widened(x, dtype, wide) for x in tensors]
        multiply: evaluation.Multiply | None = None
        library = self._found()
        if library is not None and all(x.size for x in held):
            # What is held in double precision is computed in that, unless less will do.
            compute = m.compute if wide == dtype else ""
            multiply = partial(library.multiply, compute)
        self._contracted["by cuBLAS" if multiply is None else "by cuTENSOR"] += 1
        made = evaluation.contracted(cupy, steps, held, multiply)
        store(evaluation.scaled(made, alpha), out, dtype)

    def measure(self, m: Tune, tensors: tuple[Any, ...], worker: Worker) -> Tuned:
        """Return which order is the fastest, by events on the worker's stream; blocks it."""
        native: Any = worker.stream
        stream: int = native.ptr
        dtype = m.tensors[0].dtype
        held = [widened(x, dtype, computed_in(dtype, m.compute)) for x in tensors]

        def time_us(steps: tuple[Step, ...]) -> float:
            evaluation.contracted(cupy, steps, list(held))  # the first one also loads kernels
            began, ended = runtime.eventCreate(), runtime.eventCreate()
            try:
                runtime.eventRecord(began, stream)
                for _ in range(RUNS):
                    evaluation.contracted(cupy, steps, list(held))
                runtime.eventRecord(ended, stream)
                runtime.eventSynchronize(ended)
                return float(runtime.eventElapsedTime(began, ended)) * 1e3 / RUNS
            finally:
                runtime.eventDestroy(began)
                runtime.eventDestroy(ended)

        return tuned(m.subscripts, tuple([x.shape for x in tensors]), time_us)

    def reduce(self, m: Reduce, x: Any, out: Any, alpha: Number) -> None:
        """Write the reduction (cupy.sum, prod, max, min)."""
        dtype = m.x.dtype
        if out.size:
            store(evaluation.reduce(cupy, m, _wide(x, dtype), alpha), out, dtype)

    def permute(self, m: Permute, x: Any, out: Any, alpha: Number) -> None:
        """Write alpha op(x), with its axes reordered."""
        dtype = m.x.dtype
        if out.size:
            store(evaluation.permute(cupy, m, _wide(x, dtype), alpha), out, dtype)

    def binary(self, m: Binary, a: Any, c: Any, out: Any, alpha: Number, gamma: Number) -> None:
        """Write the combination of two."""
        dtype = m.a.dtype
        if out.size:
            arrays = (_wide(a, dtype), _wide(c, dtype))
            store(evaluation.binary(cupy, m, arrays, (alpha, gamma)), out, dtype)

    def trinary(
        self,
        m: Trinary,
        a: Any,
        b: Any,
        c: Any,
        out: Any,
        alpha: Number,
        beta: Number,
        gamma: Number,
    ) -> None:
        """Write the combination of three."""
        dtype = m.a.dtype
        if out.size:
            arrays = tuple([_wide(x, dtype) for x in (a, b, c)])
            store(evaluation.trinary(cupy, m, arrays, (alpha, beta, gamma)), out, dtype)

    def _found(self) -> Cutensor | None:
        """Return cuTENSOR, which is large and loaded when it is first needed; None without it."""
        if not self._is_looked_for:
            self._is_looked_for = True
            self._cutensor = Cutensor(self._device) if installed() else None
        return self._cutensor

    def statistics(self) -> Mapping[str, int]:
        """Count the contractions that each library did, and what is planned; any thread."""
        planned = {} if self._cutensor is None else self._cutensor.statistics()
        return {**self._contracted, **statistics(), **planned}

    def close(self) -> None:
        """Destroy what cuTENSOR has; waits for the device."""
        # What cannot be waited for belongs to a lost context, which the next call tells.
        with contextlib.suppress(runtime.CUDARuntimeError):
            if self._cutensor is not None:
                self._cutensor.close()


def _wide(x: Any, dtype: str) -> Any:
    return widened(x, dtype, computed_in(dtype))
