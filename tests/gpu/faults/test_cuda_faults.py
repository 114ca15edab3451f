"""Real faults of a GPU: none costs this process anything, and the next context computes."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import blas
from accel_lab.backends.cuda.device.faults import STICKY
from accel_lab.compute.device import Device
from accel_lab.errors import (
    CircuitOpen,
    ContextLost,
    DeadlineExceeded,
    LibraryError,
    OutOfMemory,
)
from accel_lab.system import System

pytestmark = pytest.mark.gpu

WAIT_S = 60.0
ASSERTING = """
extern "C" __device__ void __assertfail(
    const char* what, const char* file, unsigned line, const char* function, size_t width);
extern "C" __global__ void check(long long never) {
  if (never != 1) __assertfail("never == 1", "cell", 1, "check", 1);
}
"""


@pytest.fixture
def lab() -> Iterator[System]:
    """Open one GPU; what failed unnoticed fails the test."""
    with System("cuda", devices=1) as lab:
        yield lab
        lab.check()


def assert_multiplies(device: Device) -> None:
    a = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    x = device.put(a)
    product = device.get(blas.gemm(x, x)).result(timeout_s=WAIT_S)
    np.testing.assert_allclose(product, a @ a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("fault", "codes"), [("poison", {700}), ("trap", {715, 719})])
def test_a_broken_context_is_replaced_and_says_why(
    lab: System, fault: Any, codes: set[int]
) -> None:
    gpu = lab.devices[0]
    kept, process, generation = gpu.put(np.arange(4.0)), os.getpid(), gpu.generation
    kept.result(timeout_s=WAIT_S)
    with pytest.raises(ContextLost) as caught:
        lab.inject(fault).result(timeout_s=WAIT_S)
    assert caught.value.code in codes
    assert caught.value.name == STICKY[caught.value.code]
    assert caught.value.generation == generation
    assert (os.getpid(), gpu.generation) == (process, generation + 1)
    assert gpu.get(kept).result(timeout_s=WAIT_S).tolist() == [0, 1, 2, 3]  # made again
    assert_multiplies(gpu)


@pytest.mark.parametrize("waits", [True, False], ids=["in the function", "after it"])
def test_an_assertion_in_a_user_s_kernel_is_noticed(lab: System, waits: bool) -> None:  # noqa: FBT001
    def break_it(source: str, wait: bool) -> None:  # noqa: FBT001
        import cupy

        cupy.RawKernel(source, "check")((1,), (1,), (0,))
        if wait:
            cupy.cuda.get_current_stream().synchronize()

    gpu = lab.devices[0]
    with pytest.raises(ContextLost) as caught:
        gpu.run(break_it, ASSERTING, waits).result(timeout_s=WAIT_S)
    assert (caught.value.code, caught.value.name) == (710, "CUDA_ERROR_ASSERT")
    assert_multiplies(gpu)


def test_everything_in_flight_is_answered_when_the_context_breaks(lab: System) -> None:
    gpu = lab.devices[0]
    x = gpu.put(np.ones((512, 512), np.float32))
    x.result(timeout_s=WAIT_S)
    broken = lab.inject("poison")
    behind = [blas.gemm(x, x) for _ in range(100)]
    with pytest.raises(ContextLost):
        broken.result(timeout_s=WAIT_S)
    for product in behind:  # run again in the next context
        assert (gpu.get(product).result(timeout_s=WAIT_S) == 512).all()
    assert_multiplies(gpu)


def test_a_kernel_that_never_ends_is_ended_by_its_deadline(lab: System) -> None:
    gpu = lab.devices[0]
    with pytest.raises(DeadlineExceeded):
        lab.inject("hang", timeout_s=1.0).result(timeout_s=WAIT_S)
    assert_multiplies(gpu)


def test_a_refused_call_of_a_library_costs_no_buffer(lab: System) -> None:
    gpu = lab.devices[0]
    kept, generation = gpu.put(np.arange(4.0)), gpu.generation
    with pytest.raises(LibraryError) as caught:
        lab.inject("library").result(timeout_s=WAIT_S)
    assert (caught.value.code, caught.value.name) == (7, "CUBLAS_STATUS_INVALID_VALUE")
    assert gpu.generation == generation
    assert gpu.get(kept).result(timeout_s=WAIT_S).tolist() == [0, 1, 2, 3]
    assert_multiplies(gpu)


def test_memory_that_cannot_be_had_costs_no_buffer(lab: System) -> None:
    gpu = lab.devices[0]
    kept, generation = gpu.put(np.arange(4.0)), gpu.generation
    with pytest.raises(OutOfMemory) as caught:
        lab.inject("out of memory").result(timeout_s=WAIT_S)
    assert caught.value.asked_bytes == 1 << 50
    assert 0 < caught.value.free_bytes < 1 << 50
    assert gpu.generation == generation
    assert gpu.get(kept).result(timeout_s=WAIT_S).tolist() == [0, 1, 2, 3]


def test_a_fourth_fault_within_a_minute_opens_the_circuit(lab: System) -> None:
    gpu = lab.devices[0]
    for _ in range(4):
        with pytest.raises(ContextLost):
            lab.inject("poison").result(timeout_s=WAIT_S)
    with pytest.raises(CircuitOpen):
        gpu.put(np.arange(4.0)).result(timeout_s=WAIT_S)
