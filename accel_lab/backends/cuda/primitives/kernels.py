"""Kernels beside CUB's: heads of runs, elements to their places, histograms with exact edges."""

from functools import cache
from typing import Any

import cupy

from accel_lab.libraries.primitives.operators import TYPES

THREADS = 256
_BLOCKS = 1024
_SHARED_BINS = 4096
"""Up to so many bins each block counts in shared memory first: 16 KiB of counters."""

_HISTOGRAM = r"""
// Returns the bin of a value, or -1: edges[bin] <= value < edges[bin + 1], the last one inclusive.
// `even` bins are guessed, and the guess is put right by the edges; others are searched.
__device__ long long bin_of(double value, const double* edges, long long bins, int even) {
  if (!(value >= edges[0] && value <= edges[bins])) return -1;
  if (value == edges[bins]) return bins - 1;
  long long low = 0, high = bins;
  if (even) {
    low = (long long)((value - edges[0]) / (edges[bins] - edges[0]) * bins);
    low = low < 0 ? 0 : low >= bins ? bins - 1 : low;
    while (low > 0 && value < edges[low]) --low;
    while (low < bins - 1 && value >= edges[low + 1]) ++low;
    return low;
  }
  while (high - low > 1) {
    const long long middle = (low + high) / 2;
    if (value >= edges[middle]) low = middle; else high = middle;
  }
  return low;
}

template <class T> __global__ void count(
    const T* x, long long n, const double* edges, long long bins, int even, int shared,
    unsigned long long* counts) {
  extern __shared__ unsigned int own[];
  if (shared) {
    for (long long at = threadIdx.x; at < bins; at += blockDim.x) own[at] = 0;
    __syncthreads();
  }
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const long long bin = bin_of((double)x[i], edges, bins, even);
    if (bin < 0) continue;
    if (shared) atomicAdd(&own[bin], 1u); else atomicAdd(&counts[bin], 1ull);
  }
  if (!shared) return;
  __syncthreads();
  for (long long at = threadIdx.x; at < bins; at += blockDim.x)
    if (own[at]) atomicAdd(&counts[at], (unsigned long long)own[at]);
}
"""


@cache
def heads_kernel() -> Any:
    """Return the kernel (keys) -> uint8 that is 1 where a run of equal neighbours begins."""
    return cupy.ElementwiseKernel(
        "raw K keys",
        "uint8 head",
        "head = i == 0 || keys[i] != keys[i - 1]",
        "accel_lab_heads",
    )


@cache
def shifted_kernel() -> Any:
    """Return the kernel (x, heads, init) -> the element before, or init where a run begins."""
    return cupy.ElementwiseKernel(
        "raw T x, uint8 head, T init",
        "T before",
        "before = head ? init : x[i - 1]",
        "accel_lab_shifted",
    )


@cache
def scatter_kernel() -> Any:
    """Return the kernel (x, chosen, ends, first, rest) that puts each element in its part.

    `ends` counts the chosen ones up to and with each element.
    """
    return cupy.ElementwiseKernel(
        "T x, bool chosen, int64 end",
        "raw T first, raw T rest",
        "if (chosen) first[end - 1] = x; else rest[i - end] = x",
        "accel_lab_scatter",
    )


@cache
def wrong_offsets_kernel() -> Any:
    """Return the kernel (offsets, extent, last) -> 1 for each that is before its neighbour or out.

    The first is to be 0, the last the extent.
    """
    return cupy.ElementwiseKernel(
        "raw int64 offsets, int64 extent, int64 last",
        "int64 wrong",
        "wrong = (i == 0 && offsets[0] != 0) || (i == last && offsets[last] != extent)"
        " || (i > 0 && offsets[i] < offsets[i - 1])",
        "accel_lab_wrong_offsets",
    )


def count(x: Any, edges: Any, out: Any, *, even: bool) -> None:
    """Write how many elements are in each bin; `edges` are float64, `out` int64, nothing has gaps.

    float16 is widened, which changes no number: CUDA's header for it may not be there. There are so
    many blocks that no counter of 32 bits overflows.
    """
    out.fill(0)
    if not x.size:
        return
    x = x.astype(cupy.float32) if x.dtype == cupy.float16 else x
    bins = out.size
    shared = bins <= _SHARED_BINS
    blocks = min(-(-x.size // THREADS), _BLOCKS)
    kernel = _counting().get_function(f"count<{TYPES[x.dtype.name]}>")
    numbers = cupy.int64(x.size), cupy.int64(bins), cupy.int32(even), cupy.int32(shared)
    extent, parts, is_even, is_shared = numbers
    arguments = x, extent, edges, parts, is_even, is_shared, out
    kernel((blocks,), (THREADS,), arguments, shared_mem=4 * bins if shared else 0)


@cache
def _counting() -> Any:
    names = tuple(f"count<{kind}>" for dtype, kind in TYPES.items() if dtype != "float16")
    return cupy.RawModule(code=_HISTOGRAM, options=("-std=c++17",), name_expressions=names)
