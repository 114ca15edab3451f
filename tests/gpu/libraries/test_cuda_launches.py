"""Clusters, overlapping kernels, TMA and wgmma on a real card of compute capability 9.0."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from accel_lab import array, jit
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.backends.cuda.jit import device_kernels as kernels

pytestmark = pytest.mark.gpu

WAIT_S = 120.0


@pytest.fixture
def hopper(gpu: Device) -> Device:
    """Require a card of compute capability 9.0 or higher."""
    if capability(gpu) < 90:
        pytest.skip("this card has no clusters")
    return gpu


def capability(gpu: Device) -> int:
    import cupy

    return int(gpu.run(lambda: int(cupy.cuda.Device().compute_capability)).result(WAIT_S))


def value(device: Device, ref: Any) -> Any:
    return device.get(ref).result(timeout_s=WAIT_S)


@pytest.mark.parametrize("cluster", [1, 2, 4, 8])
def test_blocks_of_a_cluster_read_each_other_s_shared_memory(hopper: Device, cluster: int) -> None:
    x = np.arange(16, dtype=np.int32) ** 2
    y = array.zeros(hopper, (16,), "int32")
    total = jit.compile(hopper, kernels.CLUSTER, "sum")
    for _ in range(3):
        total(16, 32, (hopper.put(x), y), cluster=cluster)
    want = np.repeat(x.reshape(-1, cluster).sum(axis=1), cluster)
    assert np.array_equal(value(hopper, y), want)


def test_a_kernel_that_does_not_wait_is_not_overlapped(hopper: Device) -> None:
    step = jit.compile(hopper, "__global__ void step(float* x) { *x += 1; }", "step")
    step.result(WAIT_S)
    with pytest.raises(InvalidArgument, match="wait_for_previous"):
        step(1, 1, (array.zeros(hopper, (1,), "float32"),), programmatic=True)


def test_many_overlapping_kernels_are_in_order(hopper: Device) -> None:
    grow = jit.compile(hopper, kernels.OVERLAP, "grow")
    n = 1 << 20
    x, y = (hopper.put(np.zeros(n, np.float32)) for _ in range(2))
    for _ in range(500):
        grow(n // 256, 256, (x, y, n), programmatic=True)
        grow(n // 256, 256, (y, x, n), programmatic=True, cluster=2)
    assert (value(hopper, x) == 1000).all()


@pytest.mark.parametrize("nbytes", [4, 8, 16])
def test_asynchronous_copies(hopper: Device, nbytes: int) -> None:
    x = np.random.default_rng(0).integers(0, 256, (64, nbytes)).astype(np.uint8)
    y = array.zeros(hopper, x.shape, "uint8")
    jit.compile(hopper, kernels.STAGED, f"turn<{nbytes}>")(1, 64, (hopper.put(x), y))
    assert np.array_equal(value(hopper, y), x[::-1])


def test_barriers_count_threads_and_bytes(hopper: Device) -> None:
    y = array.zeros(hopper, (128,), "int32")
    jit.compile(hopper, kernels.ARRIVALS, "gather")(1, 128, (y,))
    assert np.array_equal(value(hopper, y), np.arange(128)[::-1])
    x = np.arange(768, dtype=np.float32).reshape(3, 256)
    z = array.zeros(hopper, x.shape, "float32")
    jit.compile(hopper, kernels.BYTES, "turn")(1, 256, (hopper.put(x), z))
    assert np.array_equal(value(hopper, z), x[:, ::-1])


def test_tiles_are_fetched_and_stored(hopper: Device) -> None:
    """Also tiles that reach beyond the edges, and buffers that change from launch to launch."""
    grow = jit.compile(hopper, kernels.TILES, "grow")
    for shape in ((32, 128), (29, 100), (8, 32)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        y = array.zeros(hopper, shape, "float32")
        tiles = -(-shape[1] // 32), -(-shape[0] // 8)
        maps = jit.tensor_map(hopper.put(x), (8, 32), read_only=True), jit.tensor_map(y, (8, 32))
        grow(tiles, 128, maps)
        added = 1000 * (np.arange(shape[1]) // 32)
        assert np.array_equal(value(hopper, y), x + added.astype(np.float32))


def test_tiles_of_one_axis_and_of_three(hopper: Device) -> None:
    line = np.arange(128, dtype=np.float32)
    solid = np.arange(4 * 8 * 16, dtype=np.float32).reshape(4, 8, 16)
    to_line, to = array.zeros(hopper, (64,), "float32"), array.zeros(hopper, (2, 4, 8), "float32")
    box = (2, 4, 8)
    maps = (
        jit.tensor_map(hopper.put(line), 64),
        jit.tensor_map(hopper.put(solid), box),
        jit.tensor_map(to_line, 64),
        jit.tensor_map(to, box),
    )
    jit.compile(hopper, kernels.AXES, "copy")(1, 32, maps)
    assert np.array_equal(value(hopper, to_line), line[64:])
    assert np.array_equal(value(hopper, to), solid[2:, 4:, 8:])


def test_what_is_beyond_the_edges_is_zeros_or_nan(hopper: Device) -> None:
    grow = jit.compile(hopper, kernels.TILES, "grow")
    x = np.ones((4, 32), np.float32)
    for fill, beyond in (("zeros", 0.0), ("nan", np.nan)):
        y = array.zeros(hopper, (8, 32), "float32")
        maps = jit.tensor_map(hopper.put(x), (8, 32), fill=fill), jit.tensor_map(y, (8, 32))
        grow((1, 1), 128, maps)
        want = np.concatenate([x, np.full_like(x, beyond)])
        assert np.array_equal(value(hopper, y), want, equal_nan=True)


def test_memory_that_the_copy_engine_does_not_take_is_refused(hopper: Device) -> None:
    grow = jit.compile(hopper, kernels.TILES, "grow").result(WAIT_S)
    x = array.zeros(hopper, (16, 33), "float32")
    y = array.zeros(hopper, (16, 64), "float32")
    maps = jit.tensor_map(x, (8, 32)), jit.tensor_map(y, (8, 32))
    with pytest.raises(InvalidArgument, match=r"argument 0 of grow.*stride of 132 bytes"):
        grow(1, 128, maps).result(WAIT_S)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("steps", [1, 4])
def test_a_product_by_wgmma(hopper: Device, dtype: str, steps: int) -> None:
    held = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    draw = np.random.default_rng(steps).integers(-4, 5, (2, 64, 64 * steps)).astype(np.float32)
    a, b = (hopper.put(x.astype(held)) for x in draw)
    d = array.zeros(hopper, (64, 64), "float32")
    maps = [jit.tensor_map(x, (64, 64), swizzle=128, read_only=True) for x in (a, b)]
    kernel = jit.compile(hopper, kernels.PRODUCT, f"product<{str(dtype == 'bfloat16').lower()}>")
    kernel(1, 128, (*maps, d, steps))
    assert np.array_equal(value(hopper, d), draw[0] @ draw[1].T)  # whole numbers: exactly
