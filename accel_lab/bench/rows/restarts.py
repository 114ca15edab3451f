"""From the fault that ends a context to the first product that the next one computes."""

from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL
from accel_lab.bench.rounds import percentile
from accel_lab.bench.row import Budget, Row
from accel_lab.compute.actors.fault import Fault
from accel_lab.errors import ContextLost
from accel_lab.libraries.blas import library as blas
from accel_lab.system import System

LIMIT_S = 60.0
WINDOW_S = 0.05


def restart(backend: str, effort: Effort) -> list[Row]:
    """Lose contexts of a system of its own, one after another.

    A restart that follows others closely waits on purpose; the window is short so that none does.
    """
    rows: list[Row] = []
    with System(backend, devices=1, within_s=WINDOW_S) as lab:
        a = np.random.default_rng(0).standard_normal((SMALL, SMALL)).astype(np.float32)
        for fault in faults_of(backend):
            samples = [_lose(lab, fault, a) for _ in range(effort.losses)]
            rows += [
                Row(
                    name=f"restart-{fault}-p{percent}",
                    group="restart",
                    title=f"{fault} to the next product, p{percent}",
                    unit="s",
                    ours=percentile(samples, percent),
                    budget=budget,
                    rounds=len(samples),
                )
                for percent, budget in ((50, Budget(0.5, "at most", "ours")), (99, None))
            ]
    return rows


def faults_of(backend: str) -> list[Fault]:
    """Return the faults that end a context of a backend, each in a way of its own."""
    faults: list[Fault] = ["kill", "segfault", "poison", "trap"]
    return faults if backend == "cuda" else faults[:-1]


def _lose(lab: System, fault: Fault, a: Any) -> float:
    """Lose the context and compute on the next; return the seconds in between."""
    device = lab.devices[0]
    before = device.generation
    buffer = device.put(a)
    blas.gemm(buffer, buffer).result(LIMIT_S)
    begin = perf_counter()
    with suppress(ContextLost):
        lab.inject(fault).result(LIMIT_S)
    buffer = device.put(a)
    blas.gemm(buffer, buffer).result(LIMIT_S)
    seconds = perf_counter() - begin
    if device.generation != before + 1:
        text = f"{fault} took {device.name} from generation {before} to {device.generation}"
        raise RuntimeError(text)
    return seconds
