"""The smallest kernel of the user's."""

from collections.abc import Callable

from accel_lab.bench.case import Case, Send
from accel_lab.bench.operands import SMALL, squares
from accel_lab.compute.device import Device
from accel_lab.libraries.jit import library as jit

THREADS = 256
SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float* x, const float* y, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i] + y[i];
}
"""


def saxpy(size: int) -> Callable[[Device], Send]:
    """Prepare launches of a kernel that adds a matrix and a multiple of another into a third."""

    def prepare(device: Device) -> Send:
        x, y, out = squares(device, size)
        kernel = jit.compile(device, SAXPY, "saxpy").result()
        n = size * size
        return lambda: kernel(-(-n // THREADS), THREADS, (n, 2.0, x, y, out))

    return prepare


CASES = (
    Case(
        f"saxpy-{SMALL}",
        f"jit saxpy {SMALL}x{SMALL}",
        "saxpy",
        (SAXPY, SMALL),
        saxpy(SMALL),
        pipelined=0.8,
        ask=1.7,
    ),
)
