"""What the host backend is measured against: NumPy itself, called in the same process.

`backends/cuda/baseline.py` has the same functions. Each measures itself, in seconds, because the
way to it and back is none of its cost.
"""

from functools import cache
from time import monotonic, perf_counter
from typing import Any

import numpy as np


def versions() -> dict[str, str]:
    """Return what only the context can tell of its libraries."""
    build: Any = np.show_config(mode="dicts")
    blas = build.get("Build Dependencies", {}).get("blas", {})
    return {"blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()}


def labels() -> dict[str, str]:
    """Return what the peers are called."""
    return {
        "axpy": "np.add",
        "gemm": "np.matmul",
        "upload": "np.copy",
        "download": "np.copy",
        "limit": "np.copyto",
    }


def axpy_loop(size: int, count: int) -> float:
    """Add two square matrices into a third, `count` times."""
    x, y, out = _squares(size)
    begin = perf_counter()
    for _ in range(count):
        np.add(x, y, out=out)
    return perf_counter() - begin


def gemm_loop(size: int, count: int) -> float:
    """Multiply two square matrices into a third, `count` times."""
    a, b, out = _squares(size)
    begin = perf_counter()
    for _ in range(count):
        np.matmul(a, b, out=out)
    return perf_counter() - begin


def axpy_calls(size: int, count: int) -> list[float]:
    """Add, and wait for each sum: on the host there is nothing to wait for."""
    x, y, out = _squares(size)
    samples = []
    for _ in range(count):
        begin = perf_counter()
        np.add(x, y, out=out)
        samples.append(perf_counter() - begin)
    return samples


def finished() -> float:
    """Return the time, in monotonic seconds, when all work so far is done: now."""
    return monotonic()


def upload(nbytes: int) -> float:
    """Copy an array to where the library computes."""
    source, _ = _bytes(nbytes)
    begin = perf_counter()
    np.copy(source)
    return perf_counter() - begin


def download(nbytes: int) -> float:
    """Copy an array to where the user reads it; on the host the same."""
    return upload(nbytes)


def upload_limit(nbytes: int) -> float:
    """Copy between arrays that are there already, as fast as memory goes."""
    source, target = _bytes(nbytes)
    begin = perf_counter()
    np.copyto(target, source)
    return perf_counter() - begin


def download_limit(nbytes: int) -> float:
    """Copy the other way; on the host the same."""
    return upload_limit(nbytes)


@cache
def _squares(size: int) -> tuple[Any, Any, Any]:
    a = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    return a, a.T.copy(), np.empty_like(a)


@cache
def _bytes(nbytes: int) -> tuple[Any, Any]:
    return np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8) + np.uint8(1)
