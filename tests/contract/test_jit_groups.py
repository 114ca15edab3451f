"""Cooperative groups mean the same on every backend: against NumPy and the definitions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, jit
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, UserCodeError
from tests.contract.samples import seeds, value

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0
HEAD = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
"""
# Each thread writes a row of what its tile of N tells it.
TILES = (
    HEAD
    + """
template <int N> __global__ void tiles(const int* x, int* told) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<N>(block);
  int v = x[block.thread_rank()], same;
  int* row = told + 18 * block.thread_rank();
  row[0] = tile.thread_rank();
  row[1] = tile.size();
  row[2] = tile.meta_group_rank();
  row[3] = tile.meta_group_size();
  row[4] = tile.shfl(v, 1);
  row[5] = tile.shfl_up(v, 1);
  row[6] = tile.shfl_down(v, 2);
  row[7] = tile.shfl_xor(v, 1);
  row[8] = tile.any(v > 5);
  row[9] = tile.all(v > 0);
  row[10] = (int)tile.ballot(v % 2);
  row[11] = (int)tile.match_any(v % 3);
  row[12] = (int)tile.match_all(v, same) + same;
  row[13] = cg::reduce(tile, v, cg::plus<int>());
  row[14] = cg::reduce(tile, v, cg::greater<int>());
  row[15] = cg::reduce(tile, v, cg::bit_xor<int>());
  row[16] = cg::inclusive_scan(tile, v);
  row[17] = cg::exclusive_scan(tile, v, cg::plus<int>());
}
"""
)
PARTS = (
    HEAD
    + """
__device__ int rank_in(cg::thread_group group) {
  group.sync();
  return (int)(100 * group.size() + group.thread_rank());
}
__global__ void parts(const int* x, int* told) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int v = x[threadIdx.x];
  int* row = told + 6 * threadIdx.x;
  auto half = cg::binary_partition(warp, v % 2 == 1);
  row[0] = cg::reduce(half, v, cg::plus<int>());
  row[1] = rank_in(half);
  auto alike = cg::labeled_partition(warp, v % 3);
  row[2] = alike.shfl(v, 0);
  row[3] = alike.meta_group_size();
  row[4] = 0;
  if (v % 4 == 0) {
    auto here = cg::coalesced_threads();
    row[4] = here.size() * 100 + here.thread_rank();
  }
  row[5] = rank_in(block);
}
"""
)
SINGLE_PASS = (
    HEAD
    + """
__global__ void total(const double* x, double* sums, int n) {
  auto grid = cg::this_grid();
  auto block = cg::this_thread_block();
  __shared__ double parts[64];
  extern double __shared__ also[];
  double v = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) v += x[i];
  parts[threadIdx.x] = also[threadIdx.x] = v;
  grid.sync();  // the blocks have their shared memory still
  if (threadIdx.x == 0) {
    double sum = 0;
    for (int i = 0; i < blockDim.x; ++i) sum += parts[i] + also[i];
    sums[blockIdx.x] = sum / 2;
  }
  grid.sync();
  if (grid.thread_rank() == 0)
    for (int i = 1; i < gridDim.x; ++i) sums[0] += sums[i];
}
"""
)


@pytest.fixture(scope="module")
def tiles(device: Device) -> dict[int, jit.Kernel]:
    return {n: jit.compile(device, TILES, f"tiles<{n}>") for n in (4, 32)}


def told_by_tiles(x: Any, n: int) -> Any:
    """Return the rows that the kernel writes."""
    rows = x.reshape(-1, n)
    rank = np.arange(n)
    wide = np.broadcast_to
    bits = 1 << rank.astype(np.uint32)
    count = len(rows)
    matches = ((rows[:, :, None] % 3 == rows[:, None] % 3) * bits).sum(-1).astype(np.uint32)
    alike = (rows == rows[:, :1]).all(1)
    full = int(bits.sum())
    columns = [
        wide(rank, rows.shape),
        np.full(rows.shape, n),
        wide(np.arange(count)[:, None], rows.shape),
        np.full(rows.shape, count),
        wide(rows[:, 1:2], rows.shape),
        rows[:, np.where(rank < 1, rank, rank - 1)],
        rows[:, np.where(rank + 2 >= n, rank, rank + 2)],
        rows[:, rank ^ 1],
        wide((rows > 5).any(1)[:, None], rows.shape),
        wide((rows > 0).all(1)[:, None], rows.shape),
        wide((rows % 2 * bits).sum(1)[:, None], rows.shape),
        matches,
        wide(np.where(alike, full + 1, 0)[:, None], rows.shape),
        wide(rows.sum(1)[:, None], rows.shape),
        wide(rows.max(1)[:, None], rows.shape),
        wide(np.bitwise_xor.reduce(rows, 1)[:, None], rows.shape),
        rows.cumsum(1),
        rows.cumsum(1) - rows,
    ]
    return np.stack(columns, -1).reshape(-1, 18).astype(np.int64).astype(np.uint32).view(np.int32)


@settings(max_examples=10)
@given(seed=seeds, n=st.sampled_from([4, 32]), warps=st.integers(1, 4), most=st.integers(1, 9))
def test_a_tile_shuffles_votes_reduces_and_scans(
    device: Device, tiles: dict[int, jit.Kernel], seed: int, n: int, warps: int, most: int
) -> None:
    x = np.random.default_rng(seed).integers(1, most + 1, 32 * warps).astype(np.int32)
    told = array.zeros(device, (x.size, 18), "int32")
    tiles[n](1, x.size, (device.put(x), told)).result(WAIT_S)
    np.testing.assert_array_equal(value(device, told), told_by_tiles(x, n))


def test_threads_are_grouped_by_what_they_have(device: Device) -> None:
    x = np.random.default_rng(3).integers(0, 12, 64).astype(np.int32)
    told = array.zeros(device, (64, 6), "int32")
    jit.compile(device, PARTS, "parts")(1, 64, (device.put(x), told)).result(WAIT_S)
    found = value(device, told)
    for first in (0, 32):
        warp = x[first : first + 32]
        for i, v in enumerate(warp):
            half = np.flatnonzero(warp % 2 == v % 2)
            alike = np.flatnonzero(warp % 3 == v % 3)
            here = np.flatnonzero(warp % 4 == 0)
            wanted = [
                warp[half].sum(),
                100 * half.size + np.searchsorted(half, i),
                warp[alike[0]],
                len(set(warp % 3)),
                100 * here.size + np.searchsorted(here, i) if v % 4 == 0 else 0,
                6400 + first + i,
            ]
            assert found[first + i].tolist() == wanted


@settings(max_examples=5)
@given(seed=seeds, blocks=st.integers(1, 7), n=st.integers(1, 2000))
def test_a_grid_that_is_there_at_once_waits_for_all_its_blocks(
    device: Device, total: jit.Kernel, seed: int, blocks: int, n: int
) -> None:
    x = np.random.default_rng(seed).standard_normal(n)
    sums = array.zeros(device, (blocks,), "float64")
    args = device.put(x), sums, n
    total(blocks, 64, args, shared_bytes=512, cooperative=True).result(WAIT_S)
    np.testing.assert_allclose(value(device, sums)[0], x.sum(), atol=1e-10)


@pytest.fixture(scope="module")
def total(device: Device) -> jit.Kernel:
    return jit.compile(device, SINGLE_PASS, "total").result(WAIT_S)


def test_a_cooperative_grid_that_does_not_fit_is_refused(device: Device, total: jit.Kernel) -> None:
    sums = array.zeros(device, (1,), "float64")
    with pytest.raises(InvalidArgument, match=r"total: a cooperative launch has all its blocks"):
        total(1 << 20, 64, (sums, sums, 1), shared_bytes=512, cooperative=True).result(WAIT_S)
    total(1, 64, (sums, sums, 1), shared_bytes=512, cooperative=True).result(WAIT_S)


def test_a_grid_is_waited_for_in_a_cooperative_launch_alone(
    device: Device, total: jit.Kernel
) -> None:
    if not device.name.startswith("cpu"):
        pytest.skip("a card ends the context")
    sums = array.zeros(device, (2,), "float64")
    with pytest.raises(UserCodeError, match="launch it with cooperative=True"):
        total(2, 64, (sums, sums, 1), shared_bytes=512).result(WAIT_S)


def test_a_lane_outside_the_mask_is_named(device: Device) -> None:
    if not device.name.startswith("cpu"):
        pytest.skip("on a card the value is undefined")
    source = """
    __global__ void reads(int* x) { x[0] = __shfl_down_sync(0x00ffu, x[0], 8); }
    __global__ void calls(int* x) { x[0] = __ballot_sync(0x0001u, x[0]); }
    """
    x = array.zeros(device, (1,), "int32")
    for name, block, said in (
        ("reads", 8, r"__shfl_down_sync\(\) of thread \(0, 0, 0\) .* reads lane 8.*0x000000ff"),
        ("calls", 2, r"__ballot_sync\(\) of thread \(1, 0, 0\) .* is called by lane 1.*0x00000001"),
    ):
        with pytest.raises(UserCodeError, match=said):
            jit.compile(device, source, name)(1, block, (x,)).result(WAIT_S)
