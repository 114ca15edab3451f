"""Find the fastest algorithm of a product by running each; beside the dispatcher."""

import contextlib
from typing import Any

from cupy.cuda import runtime
from nvmath.bindings import cublasLt

from accel_lab.backends.cuda.blas_lt.algorithms import Algorithm
from accel_lab.backends.cuda.blas_lt.asking import Asked
from accel_lab.backends.cuda.blas_lt.call import Call
from accel_lab.backends.cuda.blas_lt.plan import UNSUPPORTED, WORKSPACE_BYTES, LtPlan, status_of
from accel_lab.compute.execution.worker import Worker
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas_lt.library import Tuned

MOST = 32
_RUNS = 5
_TO_US = 1e3


class LtHandle:
    """A handle of cuBLASLt for one worker; it belongs to no stream."""

    def __init__(self, _: Any) -> None:
        self.ptr: int = cublasLt.create()

    def close(self) -> None:
        """Destroy it."""
        # One that cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(cublasLt.cuBLASLtError):
            cublasLt.destroy(self.ptr)


def measured(
    handle: int, asked: Asked, factors: tuple[Number, Number], worker: Worker
) -> tuple[Call | None, Algorithm | None, Tuned]:
    """Return the call, its fastest algorithm, and what was measured."""
    plan = LtPlan(handle, asked.call)
    workspace = worker.workspace(WORKSPACE_BYTES)
    native: Any = worker.stream
    stream: int = native.ptr
    times: list[tuple[float, Algorithm]] = []
    try:
        for candidate in plan.candidates(MOST):
            plan.choose(candidate)
            try:
                plan.run(asked.at, factors, workspace.data.ptr, stream)
            except cublasLt.cuBLASLtError as error:
                if status_of(error) not in UNSUPPORTED:  # some are refused only here
                    raise
                continue
            began, ended = runtime.eventCreate(), runtime.eventCreate()
            try:
                runtime.eventRecord(began, stream)
                for _ in range(_RUNS):
                    plan.run(asked.at, factors, workspace.data.ptr, stream)
                runtime.eventRecord(ended, stream)
                runtime.eventSynchronize(ended)
                each_us = runtime.eventElapsedTime(began, ended) * _TO_US / _RUNS
            finally:
                runtime.eventDestroy(began)
                runtime.eventDestroy(ended)
            times.append((each_us, candidate))
    finally:
        plan.destroy()
    if not times:
        return None, None, Tuned(0, 0.0, 0.0)
    each_us, best = min(times, key=lambda one: one[0])
    return asked.call, best._replace(measured=True), Tuned(len(times), times[0][0], each_us)
