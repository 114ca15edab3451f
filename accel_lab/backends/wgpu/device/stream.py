"""Streams and a clock where there is one queue, which has all work in the order of sending."""

import time
from collections.abc import Callable
from typing import Any

from accel_lab.backends.wgpu.device.queue import Queue
from accel_lab.compute.execution.tracer import Margins


class WgpuStream:
    """A name for the queue: what waits for another stream is behind its work anyway."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def activate(self) -> None:
        """Do nothing: there is one queue."""

    def before_work(self, call: Callable[[], Callable[[], None] | None]) -> None:
        """Do nothing: when the device begins with what is recorded is not known."""

    def record(self) -> int:
        """Return an event that fires when all work enqueued so far is done."""
        return self._queue.mark()

    def wait(self, event: Any) -> None:
        """Do nothing: later work is later."""

    def done(self) -> bool:
        """Tell whether all enqueued work is done."""
        return self._queue.reached(self._queue.mark())

    def reached(self, event: Any) -> bool:
        """Tell whether the event has fired."""
        return self._queue.reached(event)

    def synchronize(self, event: Any) -> None:
        """Return when the event fires; any thread."""
        self._queue.wait(event)


class WgpuClock:
    """The host's, at the time when a mark is known to be reached."""

    def mark(self, stream: WgpuStream) -> tuple[WgpuStream, int]:
        """Put a mark behind what is enqueued."""
        return stream, stream.record()

    def read(self, mark: tuple[WgpuStream, int]) -> float | None:
        """Return the time now if the mark is reached."""
        stream, event = mark
        return time.time() if stream.reached(event) else None

    def margins(self) -> Margins:
        """Return nothing: what lies between the marks is not known."""
        return Margins(0.0, 0.0)
