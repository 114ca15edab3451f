"""The host as a device: memory is RAM, streams are synchronous, faults are simulated."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from accel_lab.backends.host.machine.peak import watch_peak
from accel_lab.backends.libraries import makers
from accel_lab.compute.arrays import jax_interop
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.arrays.torch_interop import as_array
from accel_lab.compute.execution.backend import IpcCopies, MakeRoom, Peak, PeerMemory, Poison
from accel_lab.compute.execution.stream import NativeStream
from accel_lab.compute.execution.tracer import Margins
from accel_lab.compute.machine import host_heap
from accel_lab.compute.streams.strategies import Strategy
from accel_lab.compute.wire.text import text_of
from accel_lab.errors import AccelError, InvalidArgument, LibraryError, OutOfMemory

SHARE = 4  # several devices, the notebook and the rest of the machine live in the same RAM
_OVERLAP_WORK = 10_000
_NAMES = frozenset(NAMES)


class HostStream:
    """A stream on which everything has happened when the call that enqueues it returns."""

    def activate(self) -> None:
        """Do nothing: there is one thread and it is the stream."""

    def before_work(self, call: Callable[[], Callable[[], None] | None]) -> None:
        """Do nothing: Python is the work."""

    def record(self) -> None:
        """Return the event that has fired."""

    def wait(self, event: Any) -> None:
        """Return at once."""

    def done(self) -> bool:
        """Say yes."""
        return True

    def reached(self, event: Any) -> bool:  # noqa: ARG002 - it has fired
        """Say yes."""
        return True

    def synchronize(self, event: Any) -> None:
        """Return at once."""


class HostClock:
    """The machine's own: a stream is where the call is."""

    def mark(self, stream: Any) -> float:  # noqa: ARG002 - there is one thread
        """Return the time now."""
        return time.time()

    def read(self, mark: float) -> float:
        """Return it."""
        return mark

    def margins(self) -> Margins:
        """Return nothing: what is measured is the call."""
        return Margins(0.0, 0.0)


class HostBackend:
    """A share of this machine's memory and one of its threads."""

    def __init__(self, index: int) -> None:
        self.capability = 0.0
        self.model = f"{_processor()}, part {index}"
        self.total_bytes = _memory_bytes() // SHARE
        self.arrays: ModuleType = np
        self.ipc: IpcCopies | None = None
        self.peers: PeerMemory | None = None
        self.libraries = makers("host", self)

    @property
    def most_priority(self) -> int:
        """None: there is one thread."""
        return 0

    def native_stream(self, priority: int = 0) -> NativeStream:  # noqa: ARG002 - there is none
        """Create a stream."""
        return HostStream()

    def wait_by(self, strategy: Strategy) -> None:
        """Do nothing: whatever is waited for has happened."""

    def user_stream(self) -> NativeStream:
        """Create a stream: all are the same here."""
        return HostStream()

    def worker_stream(self) -> NativeStream:
        """Create a stream: all are the same here."""
        return HostStream()

    def suit_environment(self) -> None:
        """Have JAX compute on the processor, unless the user says where: this device is that."""
        os.environ.setdefault("JAX_PLATFORMS", "cpu")

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocate; raises MemoryError."""
        return np.empty(shape, numpy_dtype(dtype))

    def free_bytes(self) -> int:
        """Return the memory that the machine could still give."""
        for line in _lines(Path("/proc/meminfo")):
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) * 1024
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")

    def largest_free_bytes(self) -> int:
        """Return all that is free: main memory is in pages, which need not be neighbours."""
        return self.free_bytes()

    def trim(self) -> None:
        """Give the system what is kept of NumPy's memory for later."""
        host_heap.give_back()

    def idle_bytes(self) -> int:
        """Return nothing: what the heap holds is the process's, and nobody counts it."""
        return 0

    def climbing(self, make_room: MakeRoom) -> AbstractContextManager[None]:  # noqa: ARG002 - as cuda
        """Do nothing: NumPy's allocations fail when the machine has no memory left."""
        return nullcontext()

    def others(self) -> tuple[tuple[str, int], ...]:
        """Return nothing: main memory is everybody's."""
        return ()

    def is_whole(self, array: Any) -> bool:
        """Whether it is an array of NumPy's in C order, and no view."""
        if type(array) is not np.ndarray or array.base is not None:
            return False
        return bool(array.flags.owndata and array.flags.c_contiguous)

    def host_memory(self, nbytes: int) -> Any:
        """Return memory; raises MemoryError."""
        return np.empty(nbytes, np.uint8)

    def unkept(self) -> str:
        """Return nothing: any process can be stopped."""
        return ""

    def pinned(self) -> tuple[int, int, int, int, int]:
        """Return nothing: main memory is as it is."""
        return 0, 0, 0, 0, 0

    def explain(self, error: BaseException, library: str) -> AccelError | Poison:
        """Translate what NumPy or SciPy raised: no memory, or a library that failed."""
        if isinstance(error, AccelError | Poison):
            return error
        if isinstance(error, MemoryError):
            return OutOfMemory(text_of(error) or "the host is out of memory")
        name = type(error).__name__
        explained = LibraryError(f"{name}: {text_of(error)}", library=library, name=name)
        explained.__cause__ = error
        return explained

    def upload(self, array: Any, offset_bytes: int, source: Any) -> None:
        """Copy host bytes into an array, beginning at a byte of its C order."""
        data = np.frombuffer(source, np.uint8)
        end = offset_bytes + data.size
        if array.flags.c_contiguous:
            array.reshape(-1).view(np.uint8)[offset_bytes:end] = data
            return
        # A view of other strides has no bytes in C order to write to; write whole elements.
        size = array.dtype.itemsize
        first, last = offset_bytes // size, -(-end // size)
        elements = np.ascontiguousarray(array.flat[first:last])
        elements.view(np.uint8)[offset_bytes - first * size : end - first * size] = data
        array.flat[first:last] = elements

    def download(self, array: Any, target: Any) -> None:
        """Copy an array in C order into host bytes."""
        np.copyto(target[: array.nbytes].view(array.dtype).reshape(array.shape), array)

    def adopt(self, value: Any) -> tuple[Any, tuple[int, ...], str, int] | None:
        """Return (array, shape, dtype, bytes held) of an array of NumPy's, or a CPU one of others.

        An array that cannot be written to, as one of JAX's, or whose bytes are in foreign order,
        is copied.
        """
        if type(value) is not np.ndarray:
            found = as_array(value)
            value = jax_interop.as_array(value) if found is None else found
            if value is None:
                return None
        dtype = str(value.dtype.newbyteorder("="))
        if dtype not in _NAMES:
            return None
        overlapping = any(
            step == 0 and n > 1 for step, n in zip(value.strides, value.shape, strict=True)
        )
        if not value.flags.writeable or not value.dtype.isnative or overlapping:
            value = value.astype(numpy_dtype(dtype), order="C")
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return value, value.shape, dtype, owner.nbytes

    def expose(self, array: Any, dtype: str) -> Any:  # noqa: ARG002 - NumPy's arrays have it
        """Return the array: it is NumPy's."""
        return array

    def same_memory(self, left: Any, right: Any) -> bool:
        """Whether two arrays have a byte in common; yes when that is hard to tell."""
        try:
            return bool(np.shares_memory(left, right, max_work=_OVERLAP_WORK))  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return True

    def address(self, array: Any) -> int | None:
        """Return where an array begins in this process, None for what is no array."""
        return array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else None

    def clock(self) -> HostClock:
        """Return the machine's clock."""
        return HostClock()

    def settle(self) -> None:
        """Do nothing: there is one stream."""

    def join(self) -> None:
        """Do nothing: all has happened."""

    def watch_peak(self) -> Callable[[], Peak | None]:
        """Begin to watch the resident memory of this process, interpreter and all."""
        return watch_peak()

    def map_segment(self, view: Any) -> None:
        """Do nothing: RAM is as fast as it gets."""

    def unmap_segment(self, view: Any) -> None:
        """Do nothing."""

    def fault(self, kind: str) -> None:
        """Play a fault of a device; only the process's own faults are real here."""
        if kind in {"poison", "trap"}:
            code, name = (
                (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
                if kind == "poison"
                else (719, "CUDA_ERROR_LAUNCH_FAILED")
            )
            raise Poison(code, name, f"{name} ({code}), injected on the host backend")
        if kind == "library":
            raise LibraryError("injected on the host backend", library="fault", name="INJECTED")
        if kind == "hang":
            while True:
                time.sleep(0.01)
        raise InvalidArgument(
            f"the host backend plays poison, trap, library and hang, not {kind!r}"
        )


def _memory_bytes() -> int:
    """Return this machine's memory, or what the container may use of it."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    allowed = limit.read_text().strip() if limit.exists() else "max"
    return min(installed, int(allowed)) if allowed.isdigit() else installed


def _processor() -> str:
    """Return the processor's model, as the kernel tells it."""
    for line in _lines(Path("/proc/cpuinfo")):
        name, _, model = line.partition(":")
        if name.strip() == "model name":
            return model.strip()
    return os.uname().machine


def _lines(table: Path) -> list[str]:
    """Return what the kernel tells; nothing where there is no `/proc`."""
    try:
        return table.read_text().splitlines()
    except OSError:
        return []
