"""Tensors on the host: NumPy, whose products of matrices are BLAS's."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.execution.worker import Worker
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.tensor import evaluation
from accel_lab.libraries.tensor.library import Binary, Contract, Permute, Reduce, Trinary, Tune
from accel_lab.libraries.tensor.message import computed_in
from accel_lab.libraries.tensor.path import Step, statistics, steps_of
from accel_lab.libraries.tensor.tuning import RUNS, Tuned, tuned


class HostTensor:
    """Calls NumPy at once: on the host, what is enqueued is done."""

    @np.errstate(all="ignore")
    def contract(self, m: Contract, tensors: tuple[Any, ...], out: Any, alpha: Number) -> None:
        """Write the sum of products, two tensors after the other."""
        dtype = numpy_dtype(computed_in(m.tensors[0].dtype, m.compute))
        shapes = tuple([x.shape for x in tensors])
        steps = steps_of(m.subscripts, shapes, m.optimize)
        made = evaluation.contracted(np, steps, [x.astype(dtype, copy=False) for x in tensors])
        out[...] = evaluation.scaled(made, alpha)

    @np.errstate(all="ignore")
    def measure(self, m: Tune, tensors: tuple[Any, ...], worker: Worker) -> Tuned:
        """Return which order is the fastest, by the processor's clock."""
        del worker
        dtype = numpy_dtype(computed_in(m.tensors[0].dtype, m.compute))
        held = [x.astype(dtype, copy=False) for x in tensors]

        def time_us(steps: tuple[Step, ...]) -> float:
            times = []
            for _ in range(RUNS):
                began = time.perf_counter()
                evaluation.contracted(np, steps, list(held))
                times.append(time.perf_counter() - began)
            return min(times) * 1e6

        return tuned(m.subscripts, tuple([x.shape for x in tensors]), time_us)

    @np.errstate(all="ignore")
    def reduce(self, m: Reduce, x: Any, out: Any, alpha: Number) -> None:
        """Write the reduction."""
        out[...] = evaluation.reduce(np, m, _wide(x, m.x.dtype), alpha)

    @np.errstate(all="ignore")
    def permute(self, m: Permute, x: Any, out: Any, alpha: Number) -> None:
        """Write alpha op(x), with its axes reordered."""
        out[...] = evaluation.permute(np, m, _wide(x, m.x.dtype), alpha)

    @np.errstate(all="ignore")
    def binary(self, m: Binary, a: Any, c: Any, out: Any, alpha: Number, gamma: Number) -> None:
        """Write the combination of two."""
        dtype = m.a.dtype
        out[...] = evaluation.binary(np, m, (_wide(a, dtype), _wide(c, dtype)), (alpha, gamma))

    @np.errstate(all="ignore")
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
        wide = tuple([_wide(x, m.a.dtype) for x in (a, b, c)])
        out[...] = evaluation.trinary(np, m, wide, (alpha, beta, gamma))

    def statistics(self) -> Mapping[str, int]:
        """Count the contractions whose order is known; any thread."""
        return statistics()


def _wide(x: Any, dtype: str) -> Any:
    return x.astype(computed_in(dtype), copy=False)
