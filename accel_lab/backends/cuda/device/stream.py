"""CUDA streams and the events between them."""

from collections import deque
from collections.abc import Callable
from typing import Any

from cupy.cuda import runtime

from accel_lab.backends.cuda.completion.event_wait import EventWait, fired

# Without timing an event is cheaper, and this is no place for measurements.
_EVENT_FLAGS = runtime.eventDisableTiming


class CudaEvent:
    """A point on a stream; it returns to its pool with its last reference, in any thread."""

    __slots__ = ("_pool", "ptr")

    def __init__(self, pool: deque[int]) -> None:
        self._pool = pool
        try:
            self.ptr = pool.pop()
        except IndexError:  # asked first, another thread might take the last one
            self.ptr = runtime.eventCreateWithFlags(_EVENT_FLAGS)

    def __del__(self) -> None:
        if hasattr(self, "ptr"):
            self._pool.append(self.ptr)


class CudaStream:
    """A stream of one card.

    The dispatcher thread uses all of it but `synchronize`, which is for the side thread; a worker
    has one of its own.
    """

    __slots__ = ("_events", "_first", "_on_activate", "_wait", "cupy_stream", "ptr")

    def __init__(
        self, wait: EventWait, events: deque[int], on_activate: Any, cupy_stream: Any
    ) -> None:
        self.cupy_stream = cupy_stream
        self.ptr: int = self.cupy_stream.ptr
        self._wait = wait
        self._events = events
        self._on_activate = on_activate
        self._first: Callable[[], Callable[[], None] | None] | None = None

    def activate(self) -> None:
        """Make it CuPy's current stream of this thread, and that of the library handles."""
        self.cupy_stream.use()
        self._on_activate(self)

    def before_work(self, call: Callable[[], Callable[[], None] | None]) -> None:
        """Have this called once, just before a library enqueues the next work.

        What it returns is called as soon as the first of that work has been enqueued.
        """
        self._first = call

    def enqueuing(self) -> Callable[[], None] | None:
        """The library that calls this is about to enqueue; what it did until now was no work.

        It calls what this returns, if that is something, when the first of it has been enqueued.
        """
        first = self._first
        if first is None:
            return None
        self._first = None
        return first()

    def record(self) -> CudaEvent:
        """Return an event that fires when all work enqueued so far is done.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        event = CudaEvent(self._events)
        runtime.eventRecord(event.ptr, self.ptr)
        return event

    def wait(self, event: CudaEvent) -> None:
        """Hold later work until the event fires; the event may be recorded anew after this.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        runtime.streamWaitEvent(self.ptr, event.ptr)

    def done(self) -> bool:
        """Tell whether all enqueued work is done.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        # `Stream.done` of CuPy 14 takes a device in error for one that is busy.
        return fired(runtime.streamQuery(self.ptr))

    def reached(self, event: CudaEvent) -> bool:
        """Tell whether the event has fired.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        return fired(runtime.eventQuery(event.ptr))

    def synchronize(self, event: CudaEvent) -> None:
        """Return when the event fires; any thread, without the interpreter's lock.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        self._wait.until(event.ptr)
