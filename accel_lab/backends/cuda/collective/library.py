"""Communicators of NCCL's, made by a key that one rank has made."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import runtime

from accel_lab.backends.cuda.array.narrow import store, widened
from accel_lab.backends.cuda.collective.bindings import bindings, multicasts, written
from accel_lab.backends.cuda.collective.communicator import Enter, NcclCommunicator, until_freed
from accel_lab.backends.cuda.device.narrow_floats import FORMATS
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.groups.group import Group

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

FP8_SINCE = 90
"""From this compute capability on NCCL reduces float8."""


class CudaCollective:
    """Makes communicators; enqueues on the stream of each launch."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._enter = Enter(partial(runtime.setDevice, device.index), multiplied)
        self._made: list[NcclCommunicator] = []

    def make_key(self, size: int) -> str:
        """Return a unique id of NCCL's; a thread of it here then waits for the ranks."""
        del size
        return bytes(bindings().get_unique_id()).hex()

    def join(self, key: str, group: Group) -> NcclCommunicator:
        """Wait for all ranks; an abort of the group ends that."""
        nccl = bindings()
        self._enter.thread()
        until_freed(self._made, group)
        config = nccl.Config()
        config.blocking = 0
        rank, size = group.rank, group.size
        made = nccl.comm_init_rank_scalable(size, rank, 1, bytearray.fromhex(key), config.ptr)
        comm = NcclCommunicator(nccl, self._device, self._enter, made, rank, size)
        self._made.append(comm)
        group.on_abort(comm.abort)
        try:
            comm.settle()
        except BaseException:
            comm.abort()
            raise
        return comm

    def enqueue(self, launch: Launch, comm: NcclCommunicator, work: Callable[[], object]) -> None:
        """Call it at once: what it enqueues comes in the order of the stream."""
        comm.enqueue(launch, work)

    def capabilities(self) -> dict[str, Any]:
        """Say what does the work, and what it can here."""
        capability = int(cupy.cuda.Device(self._device.index).compute_capability)
        return {
            "library": "nccl",
            "version": written(bindings().get_version()),
            "float8 reductions": capability >= FP8_SINCE,
            "multicast": multicasts(),
        }


def multiplied(x: Any, dtype: str, factor: float) -> Any:
    """Return an array times a number, both of a dtype and rounded to it."""
    number = numpy_dtype(dtype).type(factor)
    if dtype not in FORMATS:
        return x * number
    made = cupy.ndarray(x.shape, x.dtype)
    store(widened(x, dtype, "float32") * np.float32(number), made, dtype)
    return made
