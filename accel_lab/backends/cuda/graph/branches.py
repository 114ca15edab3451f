"""Branches of a graph: conditional nodes, and the kernel that tells them what a buffer holds."""

from typing import TYPE_CHECKING, Any

import numpy as np
from cupy.cuda import driver as cupy_driver
from cupy.cuda import runtime

from accel_lab.backends.cuda.graph import driver
from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.libraries.jit.messages import Compile

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

KINDS = {"if": 0, "while": 1, "switch": 2}
# What the device's runtime declares, in its own words; NVRTC links it by itself.
_SOURCE = r"""
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);

extern "C" __global__ void tell(
    const void* at, int bytes, int is_signed, int is_number, unsigned long long handle)
{
    unsigned long long value = 0;
    for (int i = 0; i < bytes; ++i)
        value |= (unsigned long long)((const unsigned char*)at)[i] << (8 * i);
    bool negative = is_signed && (value >> (8 * bytes - 1) & 1);
    unsigned int told = value != 0;
    if (is_number) told = negative || value > 0x7fffffff ? 0xffffffffu : (unsigned int)value;
    cudaGraphSetConditional(handle, told);
}
"""


class Teller:
    """Enqueues the kernel that sets a condition; for the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._function = 0

    def enqueue(self, condition: Any, handle: int, *, is_number: bool) -> None:
        """Have a condition be what a buffer of one element holds, on the active stream.

        Parameters:
            is_number: whether it is a case, and not whether there is something but zero. A negative
                one is no case.
        """
        if not self._function:
            self._function = self._load()
        given = (
            np.uint64(condition.data.ptr),
            np.int32(condition.itemsize),
            np.int32(condition.dtype.kind == "i"),
            np.int32(is_number),
            np.uint64(handle),
        )
        held = [np.array(one) for one in given]
        at = np.array([one.ctypes.data for one in held], np.uint64)
        cupy_driver.launchKernel(
            self._function, 1, 1, 1, 1, 1, 1, 0, self._device.active.ptr, int(at.ctypes.data), 0
        )

    def _load(self) -> int:
        properties = runtime.getDeviceProperties(self._device.index)
        architecture = f"{properties['major']}{properties['minor']}"
        compiled = nvrtc.build(Compile(_SOURCE, "tell"), architecture)
        self._module = cupy_driver.moduleLoadData(compiled.cubin)
        function: int = cupy_driver.moduleGetFunction(self._module, compiled.symbol)
        return function


def conditional(stream: int, kind: str, size: int, handle: int, context: int) -> list[int]:
    """Add a conditional node to what a stream is captured into; return the graphs of its bodies."""
    graph, after = driver.captured(stream)
    node, bodies = driver.add_conditional(graph, after, KINDS[kind], size, context, handle)
    driver.follow(stream, node)
    return bodies
