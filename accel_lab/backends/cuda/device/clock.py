"""When a stream reached a point, from the card's own time stamps."""

import time
from collections import deque

from cupy.cuda import runtime

from accel_lab.backends.cuda.completion.event_wait import fired
from accel_lab.backends.cuda.device.mark_overhead import MarginMeter
from accel_lab.backends.cuda.device.stream import CudaStream
from accel_lab.compute.execution.tracer import Margins

ANCHORED_S = 1.0
"""How long one anchor serves: the driver answers in single-precision milliseconds."""


class TimedEvent:
    """An event with a time stamp; it returns to its pool with its last reference."""

    __slots__ = ("_pool", "ptr")

    def __init__(self, pool: deque[int]) -> None:
        self._pool = pool
        self.ptr = pool.pop() if pool else runtime.eventCreateWithFlags(runtime.eventDefault)

    def __del__(self) -> None:
        if hasattr(self, "ptr"):
            self._pool.append(self.ptr)


class CudaClock:
    """Turns time stamps of one card into wall seconds."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._pool: deque[int] = deque()
        self._stream = runtime.streamCreateWithFlags(runtime.streamNonBlocking)
        self._anchor: TimedEvent | None = None
        self._anchored = 0.0
        self._meter: MarginMeter | None = None
        self._margins: Margins | None = None

    def mark(self, stream: CudaStream) -> TimedEvent:
        """Record an event on a stream; the dispatcher's thread.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        return self._record(stream.ptr)

    def read(self, mark: TimedEvent) -> float | None:
        """Return when the stream reached a mark, in wall seconds; None until it has. One thread.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        runtime.setDevice(self._device)
        if not fired(runtime.eventQuery(mark.ptr)):
            return None
        if time.time() - self._anchored > ANCHORED_S:
            self._anchor, self._anchored = self._now()
        assert self._anchor is not None
        after_ms: float = runtime.eventElapsedTime(self._anchor.ptr, mark.ptr)
        return self._anchored + after_ms / 1000

    def margins(self) -> Margins:
        """Return what two marks add to the work between them; nothing until that is measured.

        One thread; does not block.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        if self._margins is None:
            runtime.setDevice(self._device)
            if self._meter is None:
                self._meter = MarginMeter(self._record)
            self._margins = self._meter.read()
        return self._margins or Margins(0.0, 0.0)

    def _record(self, stream: int) -> TimedEvent:
        event = TimedEvent(self._pool)
        runtime.eventRecord(event.ptr, stream)
        return event

    def _now(self) -> tuple[TimedEvent, float]:
        """Record an event on a stream that has nothing to do, and say when that was."""
        before = time.time()
        anchor = self._record(self._stream)
        runtime.eventSynchronize(anchor.ptr)
        return anchor, (before + time.time()) / 2
