"""An adapter as the backend of a context."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import numpy as np

from accel_lab.backends.libraries import makers
from accel_lab.backends.wgpu.adapters import NEEDS, describe, found, lacking, most_bound
from accel_lab.backends.wgpu.device.blocks import REACH_BYTES, Blocks
from accel_lab.backends.wgpu.device.device_array import DeviceArray
from accel_lab.backends.wgpu.device.mirrors import Mirrors
from accel_lab.backends.wgpu.device.queue import Queue
from accel_lab.backends.wgpu.device.stream import WgpuClock, WgpuStream
from accel_lab.backends.wgpu.kernels import job
from accel_lab.backends.wgpu.kernels.kernels import Kernels
from accel_lab.backends.wgpu.kernels.parts import fits
from accel_lab.backends.wgpu.kernels.types import to_device, to_host, words_of
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.execution.backend import IpcCopies, MakeRoom, Peak, PeerMemory, Poison
from accel_lab.compute.streams.strategies import Strategy
from accel_lab.compute.wire.text import text_of
from accel_lab.errors import (
    AccelError,
    BackendUnavailable,
    InvalidArgument,
    LibraryError,
    OutOfMemory,
)

SHARE = 4  # a processor's adapter lives in the machine's memory, beside all else
_LEAST_TOTAL = 4 << 30
_LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroup-storage-size",
)
_OVERLAP_WORK = 10_000
_NAMES = frozenset(NAMES)


class WgpuDevice:
    """An adapter; for the dispatcher thread, except where it says so.

    Attributes:
        model: the adapter's name.
        total_bytes: its memory, as far as that is known: WebGPU tells nobody.
        lacks: the dtypes that it does not compute in.
        most_bound: how many bytes a binding can have; larger arrays are computed in parts.
        most_buffers: how many arrays a kernel can have.
        queue, kernels: where work is enqueued, and what with.
    """

    def __init__(self, index: int) -> None:
        there = found()
        if index >= len(there):
            raise BackendUnavailable(f"there is no adapter {index}: wgpu finds {len(there)}")
        adapter, told = there[index], describe(there[index])
        features = {one for needed in NEEDS.values() for one in needed} & {*told.features}
        self.device = adapter.request_device_sync(
            required_features=sorted(features),
            required_limits={name: told.limits[name] for name in _LIMITS},
        )
        most = min(told.limits["max-buffer-size"], REACH_BYTES) // 4 * 4
        self.most_bound = most_bound(told.limits)
        self.capability = 0.0
        self.model = told.name
        self.lacks = lacking(features)
        self.most_buffers = told.limits["max-storage-buffers-per-shader-stage"] - 1
        self.total_bytes = _total(told.kind, told.limits["max-buffer-size"])
        self.blocks = Blocks(self.device, most)
        self.queue = Queue(self.device)
        self.kernels = Kernels(self.device)
        self.arrays: ModuleType = np
        self.ipc: IpcCopies | None = None
        self.peers: PeerMemory | None = None
        self.libraries = makers("wgpu", self)

    @property
    def most_priority(self) -> int:
        """None: there is one queue."""
        return 0

    def native_stream(self, priority: int = 0) -> WgpuStream:  # noqa: ARG002 - there is none
        """Return a name for the queue."""
        return WgpuStream(self.queue)

    def wait_by(self, strategy: Strategy) -> None:
        """Do nothing: there is one way, a thread that maps a buffer."""

    def user_stream(self) -> WgpuStream:
        """Return a name for the queue."""
        return WgpuStream(self.queue)

    def worker_stream(self) -> WgpuStream:
        """Return a name for the queue, which any thread may fill."""
        return WgpuStream(self.queue)

    def suit_environment(self) -> None:
        """Do nothing: no library of the user's knows this device."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> DeviceArray:
        """Allocate.

        Raises:
            InvalidArgument: it is more than a buffer can have.
            MemoryError: there is no room.
        """
        native, count = numpy_dtype(dtype), 1
        for extent in shape:
            count *= extent
        block = self.blocks.take(4 * words_of(dtype) * count, shape, native)
        return DeviceArray(block, block.whole, self)

    def copy(self, x: DeviceArray, out: DeviceArray) -> None:
        """Copy elements to an array of the same shape and dtype."""
        job.copy(self, x, out)

    def free_bytes(self) -> int:
        """Return what an allocation could still get; any thread."""
        return max(0, self.total_bytes - self.blocks.held_bytes + self.blocks.free_bytes)

    def largest_free_bytes(self) -> int:
        """Return how much a single block can have."""
        return min(self.free_bytes(), self.blocks.most_bytes)

    def trim(self) -> None:
        """Give the device what is kept for later."""
        self.blocks.trim()

    def idle_bytes(self) -> int:
        """Return what is kept for later; any thread."""
        return self.blocks.free_bytes

    def climbing(self, make_room: MakeRoom) -> AbstractContextManager[None]:  # noqa: ARG002 - as cuda
        """Do nothing: user code allocates nothing here."""
        return nullcontext()

    def others(self) -> tuple[tuple[str, int], ...]:
        """Return nothing: nobody tells."""
        return ()

    def is_whole(self, array: Any) -> bool:
        """Whether it is an array in C order on a block of its own, and no view."""
        return isinstance(array, DeviceArray) and array.base is None

    def host_memory(self, nbytes: int) -> Any:
        """Return memory; WebGPU has no page-locked memory of the user's."""
        return np.empty(nbytes, np.uint8)

    def pinned(self) -> tuple[int, int, int, int, int]:
        """Return nothing: WebGPU has no page-locked memory of the user's."""
        return 0, 0, 0, 0, 0

    def unkept(self) -> str:
        """Return why a process cannot be kept without its device."""
        return "WebGPU has no call that takes a process's memory off its device"

    def explain(self, error: BaseException, library: str) -> AccelError | Poison:
        """Translate what WebGPU raised: no memory, or a mistake in a kernel or a call."""
        if isinstance(error, AccelError | Poison):
            return error
        if isinstance(error, MemoryError):
            return OutOfMemory(text_of(error) or "the device is out of memory")
        name = type(error).__name__
        explained = LibraryError(f"{name}: {text_of(error)}", library=library, name=name)
        explained.__cause__ = error
        return explained

    def upload(self, array: DeviceArray, offset_bytes: int, source: Any) -> None:
        """Copy host bytes into an array, beginning at a byte of its C order.

        Raises:
            InvalidArgument: they begin or end within an element.
        """
        data, size = np.frombuffer(source, np.uint8), array.dtype.itemsize
        first, count = offset_bytes // size, data.size // size
        if offset_bytes % size or data.size % size:
            raise InvalidArgument(f"{data.size} bytes at {offset_bytes} are no whole elements")
        if not count:
            return
        words = to_device(data, array.name)
        if array.flags.c_contiguous:
            place = 4 * words_of(array.name) * (array.offset + first)
            self.queue.write(array.block.buffer, place, words)
            return
        if not fits(self, array):
            whole = array.copy()
            self.upload(whole, offset_bytes, source)
            self.copy(whole, array)
            return
        flat = self.empty((count,), array.name)
        self.queue.write(flat.block.buffer, 0, words)
        spread = job.Job(self)
        spread.array("x", flat, moved=True)
        spread.array("y", array, moved=True)
        spread.count("first", first)
        spread.run("set_y(first() + i, x(i));", count)

    def download(self, array: DeviceArray, target: Any) -> None:
        """Copy an array in C order into host bytes, which are there when the queue is."""
        if not array.size:
            return
        whole = array if array.flags.c_contiguous else array.copy()
        name, step = array.name, 4 * words_of(array.name)
        nbytes = array.nbytes

        def take(words: Any) -> None:
            target[:nbytes] = to_host(words, name)

        self.queue.read(whole.block.buffer, whole.offset * step, whole.size * step, take)

    def mirrors(self, operands: Sequence[Any]) -> Mirrors:
        """Return arrays of NumPy's in the place of a message's operands."""
        return Mirrors(self, operands)

    def read(self, array: DeviceArray) -> Any:
        """Return an array's elements; waits for the device."""
        target = np.empty(max(array.nbytes, 1), np.uint8)
        self.download(array, target)
        self.queue.wait(self.queue.mark())
        return target[: array.nbytes].view(array.dtype).reshape(array.shape)

    def adopt(self, value: Any) -> tuple[Any, tuple[int, ...], str, int] | None:
        """Return (array, shape, dtype, bytes) of an array of this device or of NumPy's."""
        if isinstance(value, np.ndarray) and (name := str(value.dtype)) in _NAMES:
            made = self.empty(value.shape, name)
            self.upload(made, 0, np.ascontiguousarray(value).tobytes())
            value = made
        if not isinstance(value, DeviceArray):
            return None
        return value, value.shape, value.name, int(value.block.whole.nbytes)

    def expose(self, array: Any, dtype: str) -> Any:  # noqa: ARG002 - it has it
        """Return the array; NumPy copies it to the host, and `set` writes it."""
        return array

    def same_memory(self, left: Any, right: Any) -> bool:
        """Whether two arrays have an element in common; yes when that is hard to tell.

        They are the device's, or NumPy's in their place.
        """
        if isinstance(left, DeviceArray) and isinstance(right, DeviceArray):
            if left.block is not right.block:
                return False
            left, right = left.layout, right.layout
        if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
            return False
        try:
            return bool(np.shares_memory(left, right, max_work=_OVERLAP_WORK))  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return True

    def address(self, array: Any) -> int | None:
        """Return what stands for an array's address, None for what is no array; any thread."""
        if not isinstance(array, DeviceArray):
            return None
        place: int = array.layout.__array_interface__["data"][0]
        return place

    def clock(self) -> WgpuClock:
        """Return the clock."""
        return WgpuClock()

    def settle(self) -> None:
        """Do nothing: there is one queue."""

    def join(self) -> None:
        """Do nothing: there is one queue."""

    def watch_peak(self) -> Callable[[], Peak | None]:
        """Return what tells nothing."""
        return lambda: None

    def map_segment(self, view: Any) -> None:
        """Do nothing: WebGPU cannot page-lock it."""

    def unmap_segment(self, view: Any) -> None:
        """Do nothing."""

    def fault(self, kind: str) -> None:
        """Play a fault; WebGPU checks what could cause one."""
        if kind in {"poison", "trap"}:
            raise Poison(0, "WGPU_DEVICE_LOST", "WGPU_DEVICE_LOST, injected")
        if kind == "library":
            raise LibraryError("injected on the wgpu backend", library="fault", name="INJECTED")
        if kind == "hang":
            while True:
                time.sleep(0.01)
        raise InvalidArgument(f"the wgpu backend plays poison, trap, library, hang, not {kind!r}")


def _total(kind: str, most_bytes: int) -> int:
    """Return how much memory an adapter may use: WebGPU does not tell how much there is."""
    if kind == "CPU":
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // SHARE
    return max(most_bytes, _LEAST_TOTAL)
