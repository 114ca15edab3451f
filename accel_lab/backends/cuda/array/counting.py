"""Kernels that count integers, and sum weights for each, without a wait for the largest one."""

from functools import cache
from typing import Any

import cupy

_THREADS = 128
_SUM = """
extern "C" __global__ void accel_lab_sum_counted(
    const long long* order, const long long* starts, const double* weights, double* out) {
  __shared__ double sums[128];
  double sum = 0;
  for (long long i = starts[blockIdx.x] + threadIdx.x; i < starts[blockIdx.x + 1]; i += 128)
    sum += weights[order[i]];
  sums[threadIdx.x] = sum;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
"""


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


def summed(x: Any, weights: Any, length: int, out: Any) -> None:
    """Write the sum of the weights at each integer below `length`, on CuPy's current stream.

    The order of the additions follows from the operands alone, so a replay has the same bits; with
    atomic ones it would not.
    """
    order = cupy.argsort(x)  # which is stable
    starts = cupy.searchsorted(x[order], cupy.arange(length + 1, dtype="int64"))
    made = out if out.flags.c_contiguous else cupy.empty(length, "float64")
    _sum_kernel()((length,), (_THREADS,), (order, starts, weights.astype("float64"), made))
    if made is not out:
        out[...] = made


@cache
def _sum_kernel() -> Any:
    """Return the kernel whose blocks sum the weights of one integer each."""
    return cupy.RawKernel(_SUM, "accel_lab_sum_counted")
