"""The contract of a kernel's `__constant__` and `__device__` variables: they are buffers."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, jit
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.module_globals import declared_in
from tests.contract.samples import value

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0
SOURCE = """
__constant__ float weights[4];
static __device__ int calls = 3;
namespace inner { __device__ double unused; }
__device__ float weighted(float x, int i) { return x * weights[i]; }
__global__ void scale(float* x) {
  x[threadIdx.x] = weighted(x[threadIdx.x], threadIdx.x);
  if (threadIdx.x == 0) calls += 10;
}
__global__ void add(float* x) { x[threadIdx.x] += weights[threadIdx.x]; }
__global__ void count(int* x) { x[0] = calls; calls += 100; }
"""


@pytest.fixture
def scale(device: Device) -> jit.Kernel:
    return jit.compile(device, SOURCE, "scale")


def test_a_constant_is_set_and_the_kernels_of_a_source_share_it(
    device: Device, scale: jit.Kernel
) -> None:
    add = jit.compile(device, SOURCE, "add", globals=scale.globals)
    scale.globals["weights"] = weights = np.array([1, 2, 3, 4], "f")
    x = device.put(np.full(4, 5, "f"))
    scale(1, 4, (x,))
    add(1, 4, (x,))
    assert value(device, x).tolist() == (5 * weights + weights).tolist()
    scale.globals["weights"] = device.put(np.full(4, 2, "f"))
    add(1, 4, (x,))
    assert value(device, x).tolist() == (6 * weights + 2).tolist()


def test_a_variable_is_read_and_shared_as_its_buffer(device: Device, scale: jit.Kernel) -> None:
    count = jit.compile(device, SOURCE, "count", globals=scale.globals)
    scale.globals["weights"] = np.ones(4, "f")
    scale.globals["calls"] = np.array([7], "i")
    x, seen = array.zeros(device, (4,), "float32"), array.zeros(device, (1,), "int32")
    scale(1, 4, (x,))
    count(1, 1, (seen,))
    scale(1, 4, (x,))
    assert value(device, seen)[0] == 17
    assert value(device, scale.globals["calls"])[0] == 127
    assert dict(count.globals).keys() == {"weights", "calls"}


def test_a_variable_without_a_buffer_is_its_kernel_s_own(device: Device) -> None:
    seen = array.zeros(device, (1,), "int32")
    for _ in range(2):  # each of the same source has its own, which keeps what the launches leave
        count = jit.compile(device, SOURCE, "count")
        for wanted in (3, 103):
            count(1, 1, (seen,))
            assert value(device, seen)[0] == wanted


def test_launches_that_come_again_have_the_value_of_then(device: Device) -> None:
    count = jit.compile(device, SOURCE, "count")
    count.globals["calls"] = np.array([0], "i")
    seen = array.zeros(device, (1,), "int32")
    for i in range(20):
        count(1, 1, (seen,))
        assert value(device, seen)[0] == 100 * i


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("weight", np.zeros(4, "f"), r"no __constant__ or .*'weight'; it has: weights, calls"),
        ("weights", np.zeros(4), r"weights has 16 bytes, and its buffer is float64\[4\], 32 bytes"),
        ("weights", np.zeros(3, "f"), "weights has 16 bytes, and its buffer is .* 12 bytes"),
    ],
)
def test_a_buffer_that_does_not_fit_is_refused(
    device: Device, scale: jit.Kernel, name: str, given: Any, said: str
) -> None:
    x = array.zeros(device, (4,), "float32")

    def launch() -> None:
        scale.globals[name] = given
        scale(1, 4, (x,)).result(WAIT_S)

    with pytest.raises(InvalidArgument, match=said):
        launch()


def test_globals_are_those_of_a_kernel(device: Device) -> None:
    wrong: Any = {"weights": np.zeros(4, "f")}
    with pytest.raises(InvalidArgument, match="globals are those of another kernel, not"):
        jit.compile(device, SOURCE, "scale", globals=wrong)


def test_declarations_are_told_from_functions() -> None:
    text = """
    // __device__ int no;
    __device__ int a, b[3], *c; __device__ void f(int x);
    static __device__ __constant__ float d = 1;
    __constant__ __align__(16) float e[MAX(2, 3)][4]; __device__ int g() { int h; return 0; }
    """
    assert declared_in([text]) == {"a": False, "b": False, "c": False, "d": True, "e": True}
