"""Bytes to where the library computes and back."""

from functools import cache
from time import perf_counter
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime


def labels() -> dict[str, str]:
    """Return what the peers are called."""
    return {
        "upload": "cupy.asarray",
        "download": ".get()",
        "limit": "page-locked copy",
    }


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
