"""Kernels that count integers, and sum weights for each, without a wait for the largest one."""

from functools import cache
from typing import Any

import cupy


@cache
def count_kernel() -> Any:
    """Return the kernel (x, length, out) that adds 1 to out[x] for each x from 0 up to length."""
    return cupy.ElementwiseKernel(
        "S x, int64 length",
        "raw int64 z",
        "long long at = (long long)x;"
        "if (at >= 0 && at < length) atomicAdd((unsigned long long*)&z[at], 1ULL)",
        "accel_lab_count",
    )


@cache
def sum_kernel() -> Any:
    """Return the kernel (x, weights, length, out) that adds a weight to out[x] for each x."""
    return cupy.ElementwiseKernel(
        "S x, float64 weight, int64 length",
        "raw float64 z",
        "long long at = (long long)x; if (at >= 0 && at < length) atomicAdd(&z[at], weight)",
        "accel_lab_sum_counted",
    )
