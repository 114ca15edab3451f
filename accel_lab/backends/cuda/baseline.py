"""What the cuda backend is measured against: CuPy itself, called in the same process.

`backends/host/baseline.py` has the same functions. Each measures itself, in seconds, because the
way to it and back is none of its cost. All work is on CuPy's current stream.
"""

from functools import cache
from time import monotonic, perf_counter
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime


def versions() -> dict[str, str]:
    """Return what only the context can tell of its libraries."""
    from nvmath.bindings import cublas

    handle = cublas.create()
    code = cublas.get_version(handle)
    cublas.destroy(handle)
    return {
        "cuda driver api": _dotted(runtime.driverGetVersion()),
        "cuda runtime": _dotted(runtime.runtimeGetVersion()),
        "cublas": f"{code // 10000}.{code // 100 % 100}.{code % 100}",
    }


def labels() -> dict[str, str]:
    """Return what the peers are called."""
    return {
        "axpy": "cupy.add",
        "gemm": "cupy.matmul",
        "upload": "cupy.asarray",
        "download": ".get()",
        "limit": "page-locked copy",
    }


def axpy_loop(size: int, count: int) -> float:
    """Add two square matrices into a third, `count` times, and wait once."""
    x, y, out = _squares(size)
    stream = cupy.cuda.get_current_stream()
    begin = perf_counter()
    for _ in range(count):
        cupy.add(x, y, out=out)
    stream.synchronize()
    return perf_counter() - begin


def gemm_loop(size: int, count: int) -> float:
    """Multiply two square matrices into a third, `count` times, and wait once."""
    a, b, out = _squares(size)
    stream = cupy.cuda.get_current_stream()
    begin = perf_counter()
    for _ in range(count):
        cupy.matmul(a, b, out=out)
    stream.synchronize()
    return perf_counter() - begin


def axpy_calls(size: int, count: int) -> list[float]:
    """Add, and wait for each sum."""
    x, y, out = _squares(size)
    stream = cupy.cuda.get_current_stream()
    samples = []
    for _ in range(count):
        begin = perf_counter()
        cupy.add(x, y, out=out)
        stream.synchronize()
        samples.append(perf_counter() - begin)
    return samples


def finished() -> float:
    """Return the time, in monotonic seconds, when all work so far is done; waits for it."""
    runtime.deviceSynchronize()
    return monotonic()


def upload(nbytes: int) -> float:
    """Copy any NumPy array to the device as CuPy does."""
    source = _pageable(nbytes)
    stream = cupy.cuda.get_current_stream()
    begin = perf_counter()
    array = cupy.asarray(source)
    stream.synchronize()
    seconds = perf_counter() - begin
    del array
    return seconds


def download(nbytes: int) -> float:
    """Copy a device array to a new NumPy array as CuPy does."""
    array = _on_device(nbytes)
    begin = perf_counter()
    array.get()
    return perf_counter() - begin


def upload_limit(nbytes: int) -> float:
    """Copy page-locked memory to the device, as fast as the link goes."""
    return _copy(_on_device(nbytes).data.ptr, _page_locked(nbytes), nbytes)


def download_limit(nbytes: int) -> float:
    """Copy device memory to page-locked memory, as fast as the link goes."""
    return _copy(_page_locked(nbytes), _on_device(nbytes).data.ptr, nbytes)


def _copy(target: int, source: int, nbytes: int) -> float:
    stream = cupy.cuda.get_current_stream()
    begin = perf_counter()
    runtime.memcpyAsync(target, source, nbytes, runtime.memcpyDefault, stream.ptr)
    stream.synchronize()
    return perf_counter() - begin


@cache
def _squares(size: int) -> tuple[Any, Any, Any]:
    a = cupy.asarray(np.random.default_rng(0).standard_normal((size, size)).astype(np.float32))
    return a, cupy.ascontiguousarray(a.T), cupy.empty_like(a)


@cache
def _pageable(nbytes: int) -> Any:
    return np.ones(nbytes, np.uint8)


@cache
def _on_device(nbytes: int) -> Any:
    return cupy.ones(nbytes, cupy.uint8)


@cache
def _page_locked(nbytes: int) -> int:
    """Return the address of page-locked memory; its array is never freed, nor is the lock."""
    address: int = _registered(nbytes).ctypes.data
    return address


@cache
def _registered(nbytes: int) -> Any:
    array = np.ones(nbytes, np.uint8)
    runtime.hostRegister(array.ctypes.data, nbytes, runtime.hostAllocDefault)
    return array


def _dotted(code: int) -> str:
    """Write CUDA's 13000 as 13.0."""
    return f"{code // 1000}.{code % 1000 // 10}"
