"""How the blocks of a launch run: clusters, kernels that overlap, tiles; on every backend."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, graph, jit
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, InvalidArgument
from tests.contract.samples import refused, value

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0
WHERE = """
__global__ void where(int* at) {
  int block = blockIdx.x + gridDim.x * blockIdx.y;
  at[block * blockDim.x + threadIdx.x] = 100 * block + threadIdx.x;
}
"""
OVERLAPS = """
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
__global__ void turn(const float4* x, float4* y) {
  __shared__ float4 staged[64];
  accel_lab::copy_async<16>(&staged[threadIdx.x], &x[64 * blockIdx.x + threadIdx.x]);
  accel_lab::commit_copies();
  accel_lab::wait_copies<0>();
  __syncthreads();
  y[64 * blockIdx.x + threadIdx.x] = staged[63 - threadIdx.x];
}
"""
TILE = """
struct alignas(64) Tile { unsigned long long opaque[16]; };
__global__ void take(const __grid_constant__ Tile tile, float* y) { y[threadIdx.x] = 1; }
"""


@pytest.fixture(scope="module")
def where(device: Device) -> jit.Kernel:
    return jit.compile(device, WHERE, "where").result(WAIT_S)


def has_hopper(device: Device) -> bool:
    """Whether it is a card with clusters; the host runs their blocks one after another."""
    if device.name.startswith("cpu"):
        return False
    import cupy

    return int(device.run(lambda: int(cupy.cuda.Device().compute_capability)).result(WAIT_S)) >= 90


@pytest.mark.parametrize("cluster", [1, 2, (2, 2), (4, 1, 1), (4, 2)])
def test_every_block_of_every_cluster_runs_once(
    device: Device, where: jit.Kernel, cluster: Any
) -> None:
    if not device.name.startswith("cpu") and not has_hopper(device):
        pytest.skip("this card has no clusters")
    at = array.full(device, (4, 2, 32), -1, "int32")
    where((4, 2), 32, (at,), cluster=cluster)
    blocks = np.arange(8).reshape(4, 2, 1)
    want = 100 * blocks + np.arange(32)
    assert np.array_equal(value(device, at).reshape(8, 32), want.reshape(8, 32))


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (3, r"grid \(4, 2, 1\) is no multiple of cluster \(3, 1, 1\)"),
        ((4, 4), r"cluster \(4, 4, 1\) has 16 blocks; it has at most 8"),
        (0, "cluster is one to three positive integers"),
        (2.0, "cluster"),
        ((1, 1, 1, 1), "cluster is one to three"),
    ],
)
def test_clusters_that_no_device_has_are_refused(
    device: Device, where: jit.Kernel, cluster: Any, said: str
) -> None:
    at = array.zeros(device, (8, 32), "int32")
    with pytest.raises(InvalidArgument, match=said):
        where((4, 2), 32, (at,), cluster=cluster)


@pytest.mark.parametrize("how", [{"cluster": 2}, {"programmatic": True}])
def test_a_cooperative_launch_is_no_other(
    device: Device, where: jit.Kernel, how: dict[str, Any]
) -> None:
    at = array.zeros(device, (8, 32), "int32")
    with pytest.raises(InvalidArgument, match="cooperative=True goes with no cluster"):
        where((4, 2), 32, (at,), cooperative=True, **how)


def test_kernels_that_overlap_see_what_the_one_ahead_wrote(device: Device) -> None:
    if not device.name.startswith("cpu") and not has_hopper(device):
        pytest.skip("this card has no programmatic launches")
    grow = jit.compile(device, OVERLAPS, "grow").result(WAIT_S)
    n = 10_000
    buffers = [device.put(np.zeros(n, np.float32)) for _ in range(2)]
    for step in range(40):
        grow(40, 256, (buffers[step % 2], buffers[1 - step % 2], n), programmatic=True)
    assert (value(device, buffers[0]) == 40).all()


def test_a_recorded_graph_has_the_same_launches(device: Device) -> None:
    """Also where they come again, for which each is prepared once."""
    if not device.name.startswith("cpu") and not has_hopper(device):
        pytest.skip("this card has no programmatic launches")
    grow = jit.compile(device, OVERLAPS, "grow").result(WAIT_S)
    x, y = (device.put(np.zeros(256, np.float32)) for _ in range(2))
    with device.graph() as recorded:
        grow(2, 128, (x, y, 256), programmatic=True, cluster=2)
        grow(2, 128, (y, x, 256), programmatic=True, cluster=(2, 1, 1))
    for _ in range(5):
        recorded.launch()
    assert (value(device, x) == 10).all()
    assert isinstance(recorded, graph.Graph)


def test_rows_are_staged_by_asynchronous_copies(device: Device) -> None:
    turn = jit.compile(device, STAGED, "turn").result(WAIT_S)
    x = np.arange(3 * 64 * 4, dtype=np.float32).reshape(3, 64, 4)
    y = array.zeros(device, x.shape, x.dtype)
    turn(3, 64, (device.put(x), y))
    assert np.array_equal(value(device, y), x[:, ::-1])


def test_tiles_are_for_cards_that_fetch_them(device: Device) -> None:
    if has_hopper(device):
        pytest.skip("tests/gpu runs them")
    take = jit.compile(device, TILE, "take").result(WAIT_S)
    x = array.zeros(device, (16, 16), "float32")
    with refused(device, "compute capability 9.0", "tensor map"):
        take(1, 32, (jit.tensor_map(x, (8, 8)), x))


def test_tiles_are_refused_by_a_kernel_not_compiled_yet(device: Device) -> None:
    if has_hopper(device):
        pytest.skip("tests/gpu runs them")
    take = jit.compile(device, TILE + "// " + device.name, "take")
    x = array.zeros(device, (16, 16), "float32")
    with pytest.raises((InvalidArgument, DependencyFailed), match="tensor map"):
        take(1, 32, (jit.tensor_map(x, (8, 8)), x)).result(WAIT_S)


@pytest.mark.parametrize(
    ("shape", "dtype", "given", "said"),
    [
        ((16, 16), "float32", {"box": (8,)}, "one extent for each axis"),
        ((16, 16), "float32", {"box": 2.5}, "box must be integers"),
        ((16, 16), "float32", {"box": (8, 512)}, "from 1 to 256"),
        ((16, 16), "float32", {"box": (0, 4)}, "from 1 to 256"),
        ((16, 16), "float32", {"box": (8, 3)}, "12 bytes, not whole 16s"),
        ((16, 16), "float32", {"box": (8, 16), "swizzle": 32}, "64 bytes, more than swizzle=32"),
        ((16, 16), "float32", {"box": (8, 8), "swizzle": 16}, "swizzle is one of"),
        ((16, 16), "float32", {"box": (8, 8), "l2": 32}, "l2 is one of"),
        ((16, 16), "int32", {"box": (8, 8), "fill": "nan"}, "only floats"),
        ((16, 16), "float32", {"box": (8, 8), "fill": "ones"}, "fill is one of"),
        ((16, 16), "complex64", {"box": (8, 8)}, "no card has tiles of this dtype"),
        ((0, 16), "float32", {"box": (8, 8)}, "has elements"),
        ((1,) * 6, "float32", {"box": (1,) * 6}, "1 to 5 axes"),
    ],
)
def test_tiles_that_no_card_fetches_are_refused(
    device: Device, shape: tuple[int, ...], dtype: str, given: dict[str, Any], said: str
) -> None:
    x = array.zeros(device, shape, dtype)
    with pytest.raises(InvalidArgument, match=said):
        jit.tensor_map(x, **given)


def test_tiles_are_of_buffers(device: Device) -> None:
    with pytest.raises(InvalidArgument, match="takes a buffer"):
        jit.tensor_map(np.zeros(4), 4)  # type: ignore[arg-type]
