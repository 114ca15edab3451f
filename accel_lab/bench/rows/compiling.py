"""A kernel from its source to its first result: never seen before, and found on disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from time import perf_counter

from accel_lab.bench.cases.jit import SAXPY, THREADS
from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL, squares
from accel_lab.bench.rounds import percentile
from accel_lab.bench.row import Budget, Row
from accel_lab.compute.device import Device
from accel_lab.libraries.jit import library as jit
from accel_lab.system import System

CACHE = "ACCEL_LAB_CACHE"


def compiling(backend: str, effort: Effort) -> list[Row]:
    """Compile kernels with an empty cache, then each again as the first of a system of its own.

    The systems are new ones, because only a new context has not loaded the kernel. The user's own
    cache is not touched.
    """
    sources = [f"// kernel {number}\n{SAXPY}" for number in range(effort.kernels)]
    with _empty_cache():
        with System(backend, devices=1) as lab:
            cold = [_compile(lab.devices[0], source) for source in sources]
        warm, first = [], []
        for source in sources:
            with System(backend, devices=1) as lab:
                compiled_s, done_s = _first(lab.devices[0], source)
            warm.append(compiled_s)
            first.append(done_s)
    return [
        Row(
            name=name,
            group="compile",
            title=f"{title}, p50",
            unit="s",
            ours=percentile(samples, 50),
            budget=budget,
            rounds=len(samples),
        )
        for name, title, samples, budget in (
            ("compile-cold", "kernel compiled", cold, None),
            ("compile-warm", "kernel from disk, new system", warm, None),
            (
                "compile-first",
                "kernel from disk, first result",
                first,
                Budget(0.05, "at most", "ours"),
            ),
        )
    ]


def _compile(device: Device, source: str) -> float:
    begin = perf_counter()
    jit.compile(device, source, "saxpy").result()
    return perf_counter() - begin


def _first(device: Device, source: str) -> tuple[float, float]:
    """Return the seconds until a kernel is there and until its first launch has ended."""
    x, y, out = squares(device, SMALL)
    out.result()
    device.ping().result()
    n = SMALL * SMALL
    begin = perf_counter()
    kernel = jit.compile(device, source, "saxpy").result()
    there = perf_counter()
    kernel(-(-n // THREADS), THREADS, (n, 2.0, x, y, out)).result()
    return there - begin, perf_counter() - begin


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Give the systems that are opened meanwhile a cache of their own."""
    before = os.environ.get(CACHE)
    with TemporaryDirectory(prefix="accel-lab-bench-") as folder:
        os.environ[CACHE] = folder
        try:
            yield
        finally:
            del os.environ[CACHE]
            if before is not None:
                os.environ[CACHE] = before
