"""A kernel for each header of accel_lab: compiled where NVRTC is, run where a card is."""

BYTES = """
#include <accel_lab/tma.h>
__global__ void turn(const float* x, float* y) {
  __shared__ alignas(16) float row[256];
  __shared__ accel_lab::Barrier full;
  if (threadIdx.x == 0) full.init(1);
  __syncthreads();
  for (unsigned phase = 0; phase < 3; ++phase) {  // of parity 0, 1, 0
    if (threadIdx.x == 0) {
      full.arrive_and_expect(sizeof(row));
      accel_lab::load_bytes(row, x + 256 * phase, sizeof(row), full);
    }
    full.wait(phase % 2);
    y[256 * phase + threadIdx.x] = row[255 - threadIdx.x];
    __syncthreads();
  }
}
"""
"""Each of three rows of 256, turned round."""

ARRIVALS = """
#include <accel_lab/mbarrier.h>
__global__ void gather(int* y) {
  __shared__ int seen[128];
  __shared__ accel_lab::Barrier all;
  if (threadIdx.x == 0) all.init(128);
  __syncthreads();
  seen[threadIdx.x] = threadIdx.x;
  all.arrive();
  all.wait(0);
  y[threadIdx.x] = seen[127 - threadIdx.x];
}
"""

TILES = """
#include <accel_lab/tma.h>
using accel_lab::TensorMap;
__global__ void grow(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y) {
  __shared__ alignas(128) float tile[8][32];
  __shared__ accel_lab::Barrier full;
  int column = 32 * blockIdx.x, row = 8 * blockIdx.y;
  if (threadIdx.x == 0) {
    accel_lab::prefetch(x);
    full.init(1);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    full.arrive_and_expect(sizeof(tile));
    accel_lab::load_tile(tile, x, full, column, row);
  }
  full.wait(0);
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i / 32][i % 32] += 1000 * blockIdx.x;
  accel_lab::publish_to_stores();
  __syncthreads();
  if (threadIdx.x == 0) {
    accel_lab::store_tile(y, tile, column, row);
    accel_lab::commit_stores();
    accel_lab::wait_stores<0>();
  }
}
"""
"""Tiles of 8 x 32: each gets 1000 times its column of tiles added."""

AXES = """
#include <accel_lab/tma.h>
using accel_lab::TensorMap;
__global__ void copy(
    const __grid_constant__ TensorMap line, const __grid_constant__ TensorMap solid,
    const __grid_constant__ TensorMap to_line, const __grid_constant__ TensorMap to) {
  __shared__ alignas(128) float one[64];
  __shared__ alignas(128) float three[2][4][8];
  __shared__ accel_lab::Barrier full;
  if (threadIdx.x == 0) full.init(1);
  __syncthreads();
  if (threadIdx.x == 0) {
    full.arrive_and_expect(sizeof(one) + sizeof(three));
    accel_lab::load_tile(one, line, full, 64);
    accel_lab::load_tile(three, solid, full, 8, 4, 2);
  }
  full.wait(0);
  if (threadIdx.x == 0) {
    accel_lab::store_tile(to_line, one, 0);
    accel_lab::store_tile(to, three, 0, 0, 0);
    accel_lab::commit_stores();
    accel_lab::wait_stores<0>();
  }
}
"""

PRODUCT = """
#include <accel_lab/tma.h>
#include <accel_lab/wgmma.h>
using accel_lab::TensorMap;
namespace wgmma = accel_lab::wgmma;
template <bool bfloats>
__global__ void product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                        float* d, int steps) {
  __shared__ alignas(1024) unsigned short left[64 * 64];
  __shared__ alignas(1024) unsigned short right[64 * 64];
  __shared__ accel_lab::Barrier full;
  if (threadIdx.x == 0) full.init(1);
  __syncthreads();
  float sums[32] = {};
  for (int step = 0; step < steps; ++step) {
    if (threadIdx.x == 0) {
      full.arrive_and_expect(sizeof(left) + sizeof(right));
      accel_lab::load_tile(left, a, full, 64 * step, 0);
      accel_lab::load_tile(right, b, full, 64 * step, 0);
    }
    full.wait(step % 2);
    wgmma::fence();
    for (int k = 0; k < 64; k += 16) {
      unsigned long long of_a = wgmma::matrix(left) + (2 * k >> 4);
      unsigned long long of_b = wgmma::matrix(right) + (2 * k >> 4);
      bool adds = step || k;
      if (bfloats) {
        wgmma::multiply_bfloats(sums, of_a, of_b, adds);
      } else {
        wgmma::multiply_halves(sums, of_a, of_b, adds);
      }
    }
    wgmma::commit();
    wgmma::wait<0>();
    __syncthreads();
  }
  int row = 16 * (threadIdx.x / 32) + threadIdx.x % 32 / 4, column = 2 * (threadIdx.x % 4);
  for (int j = 0; j < 32; ++j) {
    d[64 * (row + 8 * (j / 2 % 2)) + 8 * (j / 4) + column + j % 2] = sums[j];
  }
}
"""
"""a b^T of two matrices with 64 rows, of 64 `steps` halves, by one block of 128 threads."""

TENSOR_MEMORY = """
#include <accel_lab/tcgen05.h>
namespace tcgen05 = accel_lab::tcgen05;
__global__ void product(unsigned long long a, unsigned long long b, unsigned kind, float* d) {
  __shared__ unsigned where;
  __shared__ accel_lab::Barrier done;
  if (threadIdx.x == 0) done.init(1);
  if (threadIdx.x < 32) tcgen05::allocate(&where, 32);
  __syncthreads();
  tcgen05::fence_after_barrier();
  if (threadIdx.x == 0) {
    tcgen05::multiply(where, a, b, kind, false);
    tcgen05::commit(done);
  }
  done.wait(0);
  tcgen05::fence_after_barrier();
  unsigned row[8];
  tcgen05::read(row, where + (threadIdx.x / 32 << 21));
  for (int j = 0; j < 8; ++j) d[8 * threadIdx.x + j] = __uint_as_float(row[j]);
  __syncthreads();
  if (threadIdx.x < 32) tcgen05::release(where, 32);
}
"""

CLUSTER = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void sum(const int* x, int* y) {
  __shared__ int part;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) part = x[blockIdx.x];
  cluster.sync();
  if (threadIdx.x == 0) {
    int total = 0;
    for (unsigned i = 0; i < cluster.num_blocks(); ++i) total += *cluster.map_shared_rank(&part, i);
    y[blockIdx.x] = total;
  }
  cluster.sync();
}
"""
"""Each block writes the sum of what the blocks of its cluster read."""

OVERLAP = """
#include <accel_lab/programmatic.h>
__global__ void grow(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  accel_lab::let_next_begin();
  accel_lab::wait_for_previous();
  if (i < n) y[i] = x[i] + 1;
}
"""

STAGED = """
#include <accel_lab/async_copy.h>
template <int bytes> __global__ void turn(const char* x, char* y) {
  __shared__ alignas(16) char staged[64 * bytes];
  accel_lab::copy_async<bytes>(staged + bytes * threadIdx.x, x + bytes * threadIdx.x);
  accel_lab::commit_copies();
  accel_lab::wait_copies<0>();
  __syncthreads();
  for (int i = 0; i < bytes; ++i) {
    y[bytes * threadIdx.x + i] = staged[bytes * (63 - threadIdx.x) + i];
  }
}
"""
