"""The one queue of a device: work is recorded into passes, and submitted when somebody waits."""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import wgpu

from accel_lab.compute.execution.backend import Poison

_SLOT = 256
"""What the place of a job's numbers is a multiple of, on every adapter."""
_RING_BYTES = 1 << 18
_MOST = 512
"""How many dispatches are recorded before they are submitted, wait anybody or not."""
_USAGE = wgpu.BufferUsage


class _Pending(NamedTuple):
    """What is copied to the host: whose mapping tells that all before it is done."""

    number: int
    buffer: Any
    promise: Any
    take: Callable[[Any], None] | None


class Queue:
    """Records and submits, for any thread; another thread waits for what was submitted.

    Attributes:
        submitted: how often something was.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._lock = threading.RLock()
        self._encoder: Any = None
        self._pass: Any = None
        self._jobs = 0
        self._words = bytearray(_RING_BYTES)
        self._used = 0
        usage = _USAGE.STORAGE | _USAGE.UNIFORM | _USAGE.COPY_DST | _USAGE.COPY_SRC
        self._ring = device.create_buffer(size=_RING_BYTES, usage=usage)
        self._fences: list[Any] = []
        self._is_marked = True
        self._last = self._done = self.submitted = 0
        self._error: BaseException | None = None
        self._reached = threading.Condition()
        self._waits: queue.SimpleQueue[_Pending] = queue.SimpleQueue()
        threading.Thread(target=self._follow, name="wgpu queue", daemon=True).start()

    def dispatch(
        self,
        pipeline: Any,
        layout: Any,
        bound: Sequence[bytes | tuple[Any, int, int]],
        groups: tuple[int, int, int],
    ) -> None:
        """Record a job.

        Parameters:
            bound: what the bindings get: numbers, or (buffer, place, bytes).
        """
        with self._lock:
            room = sum(_room(one) for one in bound if isinstance(one, bytes))
            if self._used + room > _RING_BYTES or self._jobs >= _MOST:
                self.flush()
            entries = [
                {"binding": at, "resource": self._resource(one)} for at, one in enumerate(bound)
            ]
            group = self._device.create_bind_group(layout=layout, entries=entries)
            if self._pass is None:
                self._pass = self._recording().begin_compute_pass()
            self._pass.set_pipeline(pipeline)
            self._pass.set_bind_group(0, group)
            self._pass.dispatch_workgroups(*groups)
            self._jobs += 1
            self._is_marked = False

    def _resource(self, bound: bytes | tuple[Any, int, int]) -> dict[str, Any]:
        if isinstance(bound, tuple):
            buffer, place, nbytes = bound
            return {"buffer": buffer, "offset": place, "size": nbytes}
        at, self._used = self._used, self._used + _room(bound)
        self._words[at : at + len(bound)] = bound
        return {"buffer": self._ring, "offset": at, "size": _room(bound)}

    def copy(self, source: Any, start: int, target: Any, place: int, nbytes: int) -> None:
        """Record a copy from one buffer to another one."""
        with self._lock:
            self._copying().copy_buffer_to_buffer(source, start, target, place, nbytes)
            self._is_marked = False

    def write(self, buffer: Any, place: int, data: Any) -> None:
        """Write from the host, which is read before this returns."""
        with self._lock:
            self.flush()
            self._device.queue.write_buffer(buffer, place, data)
            self._is_marked = False

    def read(self, buffer: Any, place: int, nbytes: int, take: Callable[[Any], None]) -> int:
        """Have a function given the bytes once they are there; return the number to wait for."""
        with self._lock:
            usage = _USAGE.MAP_READ | _USAGE.COPY_DST
            staging = self._device.create_buffer(size=nbytes, usage=usage)
            self._copying().copy_buffer_to_buffer(buffer, place, staging, 0, nbytes)
            return self._map(staging, take)

    def mark(self) -> int:
        """Return the number that is reached when all that was recorded so far is done."""
        with self._lock:
            if not self._is_marked:
                fence = self._fences.pop() if self._fences else self._new_fence()
                self._copying().copy_buffer_to_buffer(self._ring, 0, fence, 0, 4)
                self._map(fence, None)
            return self._last

    def reached(self, number: int) -> bool:
        """Whether it is.

        Raises:
            Poison: the device is lost.
        """
        if self._error is not None:
            raise self._error
        return self._done >= number

    def wait(self, number: int) -> None:
        """Return when it is.

        Raises:
            Poison: the device is lost.
        """
        with self._reached:
            self._reached.wait_for(lambda: self._done >= number or self._error is not None)
        self.reached(number)

    def flush(self) -> None:
        """Submit what is recorded."""
        with self._lock:
            if self._encoder is None:
                return
            encoder = self._copying()
            self._encoder, self._jobs = None, 0
            if self._used:
                words = memoryview(self._words)[: self._used]
                self._device.queue.write_buffer(self._ring, 0, words)
                self._used = 0
            self._device.queue.submit([encoder.finish()])
            self.submitted += 1

    def _recording(self) -> Any:
        if self._encoder is None:
            self._encoder = self._device.create_command_encoder()
        return self._encoder

    def _copying(self) -> Any:
        """Return the encoder outside of a pass."""
        if self._pass is not None:
            self._pass.end()
            self._pass = None
        return self._recording()

    def _new_fence(self) -> Any:
        return self._device.create_buffer(size=4, usage=_USAGE.MAP_READ | _USAGE.COPY_DST)

    def _map(self, buffer: Any, take: Callable[[Any], None] | None) -> int:
        self.flush()
        self._last += 1
        promise = buffer.map_async(wgpu.MapMode.READ)
        self._waits.put(_Pending(self._last, buffer, promise, take))
        self._is_marked = True
        return self._last

    def _follow(self) -> None:
        """Wait for one mapping after the other, as long as the process lives."""
        while True:
            one = self._waits.get()
            try:
                one.promise.sync_wait()
                if one.take is not None:
                    one.take(np.frombuffer(one.buffer.read_mapped(copy=False), np.uint8))
                one.buffer.unmap()
                if one.take is None:
                    self._fences.append(one.buffer)
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                self._fail(error)
                return
            with self._reached:
                self._done = one.number
                self._reached.notify_all()

    def _fail(self, error: BaseException) -> None:
        lost = Poison(0, "WGPU_DEVICE_LOST", f"the device's queue has ended: {error}")
        lost.__cause__ = error
        with self._reached:
            self._error = lost
            self._reached.notify_all()


def _room(numbers: bytes) -> int:
    """Return the bytes that numbers take in the ring."""
    return -(-len(numbers) // _SLOT) * _SLOT
