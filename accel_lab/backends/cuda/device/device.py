"""One card, opened in a context process: memory, streams, copies, and what its errors mean.

Arrays are CuPy's, from a pool that reuses freed memory in stream order. Dtypes that
CuPy lacks are held as unsigned integers of the same width.
"""

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import get_ident
from types import ModuleType
from typing import Any
from weakref import WeakSet

import cupy
import numpy as np
from cuda.pathfinder import DynamicLibNotFoundError
from cupy.cuda import runtime

from accel_lab.backends.cuda.completion.event_wait import EventWait
from accel_lab.backends.cuda.device import faults
from accel_lab.backends.cuda.device.clock import CudaClock
from accel_lab.backends.cuda.device.injection import Injection
from accel_lab.backends.cuda.device.interop import adopt, export, expose, overlap, storage_of
from accel_lab.backends.cuda.device.other_processes import neighbours
from accel_lab.backends.cuda.device.pinned import PinnedPool, PinnedSegments
from accel_lab.backends.cuda.device.pool import Pool, let_segments_grow
from accel_lab.backends.cuda.device.stream import CudaEvent, CudaStream
from accel_lab.backends.cuda.device.stream_write import write_word
from accel_lab.backends.libraries import makers
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.execution.backend import IpcCopies, MakeRoom, Peak, PeerMemory, Poison
from accel_lab.compute.streams.strategies import Strategy
from accel_lab.errors import AccelError, InvalidArgument

_BEYOND = 1000
"""More than the priorities of any card."""
_STORAGE = {name: storage_of(name) for name in NAMES}


class CudaDevice:
    """A card as the backend of a context; for the dispatcher thread, except where it says so.

    Attributes:
        model: the card's name.
        total_bytes: its memory.
        arrays: CuPy.
        ipc, peers: itself, which reads other processes' memory on the card and on its peers.
        libraries: what makes the libraries of this backend.
        active: the stream on which this thread enqueues.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self._thread = get_ident()
        self._pool = Pool(index)
        self._events: deque[int] = deque()
        self._wait = EventWait(index)
        self._opened: dict[bytes, int] = {}
        self.shared_files: WeakSet[Any] = WeakSet()  # of memory that others may have open
        self.managed: WeakSet[Any] = WeakSet()  # memory that the driver moves by itself
        self._pinned = PinnedSegments(index)
        self._pinned_pool = PinnedPool(index)
        self._injection = Injection()
        runtime.setDevice(index)
        # The first call that needs the context makes it, which takes most of the time.
        self.total_bytes: int = runtime.memGetInfo()[1]
        properties = runtime.getDeviceProperties(index)
        self.model: str = properties["name"].decode()
        self.capability = properties["major"] + properties["minor"] / 10
        self.arrays: ModuleType = cupy
        self.ipc: IpcCopies | None = self
        self.peers: PeerMemory | None = self
        self.libraries = makers("cuda", self, DynamicLibNotFoundError)
        self.active = self.native_stream()
        self.active.activate()

    @property
    def notes(self) -> tuple[str, ...]:
        """What works but not as well as it could, for people; any thread."""
        return self._pinned.notes

    @property
    def most_priority(self) -> int:
        """The card's highest; CUDA takes what is beyond for that, and counts downwards."""
        return -int(cupy.cuda.Stream(non_blocking=True, priority=-_BEYOND).priority)

    def native_stream(self, priority: int = 0) -> CudaStream:
        """Create a stream that does not wait for the legacy default stream."""
        return self._stream(cupy.cuda.Stream(non_blocking=True, priority=-priority))

    def wait_by(self, strategy: Strategy) -> None:
        """Have threads wait for events of all streams that way; before any does."""
        self._wait.strategy = strategy

    def user_stream(self) -> CudaStream:
        """Return the legacy default stream, on which CuPy's and PyTorch's work is elsewhere, too.

        So code that waits for `Stream.null` waits for its own work, and the two are in one order.
        """
        return self._stream(cupy.cuda.Stream.null)

    def worker_stream(self) -> CudaStream:
        """Create a stream that does not wait for the legacy default stream, for the calling thread.

        CuPy's current stream is each thread's own; the libraries' handles stay with `active`.
        """
        runtime.setDevice(self.index)
        stream = cupy.cuda.Stream(non_blocking=True)
        return CudaStream(self._wait, self._events, lambda _: None, stream)

    def suit_environment(self) -> None:
        """Have PyTorch take little more of the card than it uses, unless the user says how."""
        let_segments_grow()

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocate from the active stream's part of the pool.

        Raises:
            MemoryError: not even after the pool has given back what is free, which CuPy sees to.
        """
        return cupy.ndarray(shape, _STORAGE[dtype])

    def free_bytes(self) -> int:
        """Return what the card has free and what the pool holds unused; any thread."""
        with self._here():
            return self._pool.within_limit(runtime.memGetInfo()[0] + self._pool.idle_bytes())

    def largest_free_bytes(self) -> int:
        """Return what the card has free: the driver makes one block of that.

        The pool may have a larger one, or several that are smaller: of what it holds unused CuPy
        tells the sum alone.
        """
        with self._here():
            return self._pool.from_card(runtime.memGetInfo()[0])

    def trim(self) -> None:
        """Give the card what the pool holds unused; waits for the card."""
        self._pool.trim()

    def idle_bytes(self) -> int:
        """Return what the pool holds unused; any thread."""
        return self._pool.idle_bytes()

    def climbing(self, make_room: MakeRoom) -> AbstractContextManager[None]:
        """Have CuPy's allocations in the user's code ask for room before they fail."""
        return self._pool.climbing(make_room)

    def others(self) -> tuple[tuple[str, int], ...]:
        """Return what other processes have of the card, `(name, bytes)`, largest first."""
        return neighbours(self.index)

    def is_whole(self, array: Any) -> bool:
        """Whether it is an array of CuPy's in C order on memory of the pool, and no view."""
        return (
            isinstance(array, cupy.ndarray)
            and array.base is None
            and bool(array.flags.c_contiguous)
            and self._pool.owns(array.data.mem)
        )

    def host_memory(self, nbytes: int) -> Any:
        """Return page-locked memory, which is used again when the array is gone.

        Raises:
            MemoryError: the system gives no more.
        """
        return self._pinned_pool.array(nbytes)

    def unkept(self) -> str:
        """Say so where it has memory that CUDA's checkpoint refuses."""
        if any(one.is_open() for one in self.shared_files):
            return "another process has memory of it open (CUDA IPC)"
        if self._opened:
            return "it has memory of another process open (CUDA IPC)"
        return "it has managed memory, which the driver moves by itself" if self.managed else ""

    def pinned(self) -> tuple[int, int, int, int, int]:
        """Return how much host memory is page-locked; any thread."""
        return self._pinned.nbytes, *self._pinned_pool.counted()

    def explain(self, error: BaseException, library: str) -> AccelError | Poison:
        """Translate what a CUDA library or a user's function raised; any thread."""
        with self._here():
            return faults.explain(error, library, self._status, self.free_bytes)

    def upload(self, array: Any, offset_bytes: int, source: Any) -> None:
        """Copy host bytes into a contiguous array's memory, in order on the active stream.

        `bytes` must be kept until the stream gets there; the message that brought them is.

        Raises:
            InvalidArgument: they would not fit.
        """
        data = np.frombuffer(source, np.uint8)
        if not array.flags.c_contiguous or offset_bytes + data.nbytes > array.nbytes:
            raise InvalidArgument(
                f"{data.nbytes} bytes at {offset_bytes} do not fit into {array.nbytes} in a row"
            )
        if data.nbytes:
            runtime.memcpyAsync(
                array.data.ptr + offset_bytes,
                _address(data),
                data.nbytes,
                runtime.memcpyHostToDevice,
                self.active.ptr,
            )

    def download(self, array: Any, target: Any) -> None:
        """Copy an array in C order into a uint8 arena view, in order on the active stream.

        Raises:
            MemoryError: the contiguous copy that strides ask for does not fit.
        """
        if not array.size:
            return
        row_major = cupy.ascontiguousarray(array)
        runtime.memcpyAsync(
            _address(target),
            row_major.data.ptr,
            row_major.nbytes,
            runtime.memcpyDeviceToHost,
            self.active.ptr,
        )

    def copy_in(self, array: Any, handle: bytes, offset_bytes: int) -> None:
        """Copy from another process's memory, in order on the active stream.

        It is opened once (`cudaIpcOpenMemHandle`, 0.1 to 0.3 ms), and then until `unmap`.

        Raises:
            InvalidArgument: the handle cannot be opened on this card.
        """
        base = self._opened.get(handle)
        if base is None:
            try:
                base = runtime.ipcOpenMemHandle(handle)
            except runtime.CUDARuntimeError as error:
                text = f"memory of another process cannot be read: {error}"
                raise InvalidArgument(text) from error
            self._opened[handle] = base
        source, kind = base + offset_bytes, runtime.memcpyDeviceToDevice
        runtime.memcpyAsync(array.data.ptr, source, array.nbytes, kind, self.active.ptr)

    def export(self, array: Any) -> tuple[bytes, int] | None:
        """Return the handle of an array's allocation (`cuIpcGetMemHandle`) and its place there.

        None for what has gaps, and for memory of PyTorch's segments that grow, which has no handle.
        """
        return export(array) if array.flags.c_contiguous else None

    def copy_peer(self, array: Any, handle: bytes, offset_bytes: int) -> Callable[[], None]:
        """Copy what another context has exported, in order on the active stream.

        To open it (`cudaIpcOpenMemHandle`) lets this card read the other one, if the two are peers.

        Raises:
            InvalidArgument: the handle cannot be opened on this card.
        """
        try:
            base = runtime.ipcOpenMemHandle(handle)
        except runtime.CUDARuntimeError as error:
            text = f"the other card's memory cannot be read: {error}; lab.topology.direct = False"
            raise InvalidArgument(text) from error
        source, kind = base + offset_bytes, runtime.memcpyDefault
        runtime.memcpyAsync(array.data.ptr, source, array.nbytes, kind, self.active.ptr)

        def close() -> None:
            runtime.setDevice(self.index)
            runtime.ipcCloseMemHandle(base)

        return close

    def write_word(self, word: Any, value: int) -> None:
        """Have the card write four bytes of the arena, in order on the active stream.

        Does nothing where the memory could not be page-locked.
        """
        write_word(_address(word), value, self.active.ptr)

    def unmap(self, handle: bytes) -> Callable[[], None] | None:
        """Forget another process's memory; return what closes it (`cudaIpcCloseMemHandle`).

        The driver counts openings, so it may be opened again before that is called.
        """
        base = self._opened.pop(handle, None)
        if base is None:
            return None

        def close() -> None:
            runtime.setDevice(self.index)
            runtime.ipcCloseMemHandle(base)

        return close

    def adopt(self, value: Any) -> tuple[Any, tuple[int, ...], str, int] | None:
        """Return (array, shape, dtype, bytes) of a CuPy array or a torch tensor on this card.

        Work that a user's function enqueued on a stream of its own is waited for.

        Raises:
            InvalidArgument: it lies on another card, or has a dtype that no buffer has.
        """
        return adopt(value, self.index, self._return_from_user)

    def expose(self, array: Any, dtype: str) -> Any:
        """Return a CuPy array of the buffer's own dtype.

        CuPy computes with bfloat16, and only views and copies float8.
        """
        self._return_from_user()
        return expose(array, dtype)

    def same_memory(self, left: Any, right: Any) -> bool:
        """Whether an element of one array is an element of the other."""
        return overlap(left, right)

    def address(self, array: Any) -> int | None:
        """Return where an array begins on the card, None for what is no array; any thread."""
        return array.data.ptr if isinstance(array, cupy.ndarray) else None

    def clock(self) -> CudaClock:
        """Return the card's clock."""
        return CudaClock(self.index)

    def settle(self) -> None:
        """Make this card and the active stream current again, in order after the user's stream.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        self._return_from_user()

    def join(self) -> None:
        """Have the active stream wait for the user's current one, and for the legacy default one.

        The latter is in step with all streams but those made non-blocking: with CuPy's own, and
        with what torch does where nobody chose a stream.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        self._return_from_user()
        event = CudaEvent(self._events)
        runtime.eventRecord(event.ptr, runtime.streamLegacy)
        self.active.wait(event)

    def watch_peak(self) -> Callable[[], Peak | None]:
        """Begin to watch how much memory is in use at most."""
        return self._pool.watch_peak()

    def map_segment(self, view: Any) -> None:
        """Page-lock an arena segment, about 0.1 s a GiB; any thread.

        When the system forbids it, copies are slower and the reason is among `notes`.
        """
        self._pinned.add(view)

    def unmap_segment(self, view: Any) -> None:
        """Undo `map_segment`; any thread."""
        self._pinned.remove(view)

    def fault(self, kind: str) -> None:
        """Cause a real fault: poison, trap, hang or library; only the last one raises here.

        Raises:
            cuBLASError: the fault is the library's.
        """
        self._injection.cause(kind)

    def _stream(self, cupy_stream: Any) -> CudaStream:
        return CudaStream(self._wait, self._events, self._activated, cupy_stream)

    def _activated(self, stream: CudaStream) -> None:
        self.active = stream

    def _status(self) -> int:
        """Return the device's own status; a context in error answers every call with it."""
        return int(runtime.streamQuery(self.active.ptr))

    def _here(self) -> AbstractContextManager[Any]:
        """Choose this card: the dispatcher's thread for now, and any other for good.

        CUDA has each thread begin with the first card, and to return there would open it.
        """
        if get_ident() == self._thread:
            device: AbstractContextManager[Any] = cupy.cuda.Device(self.index)
            return device
        runtime.setDevice(self.index)
        return nullcontext()

    def _return_from_user(self) -> None:
        """Make this card and its stream current again, after what the user put there instead."""
        runtime.setDevice(self.index)
        current = cupy.cuda.get_current_stream()
        if current.ptr != self.active.ptr:
            event = current.record()
            runtime.streamWaitEvent(self.active.ptr, event.ptr)
            self.active.activate()


def _address(data: Any) -> int:
    return int(data.__array_interface__["data"][0])
