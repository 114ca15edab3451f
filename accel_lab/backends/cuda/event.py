"""Events on cuda: CUDA events with time stamps, from a pool."""

from typing import TYPE_CHECKING, Any

from cupy.cuda import runtime

from accel_lab.backends.cuda.completion.event_wait import fired
from accel_lab.backends.cuda.device.clock import TimedEvent
from accel_lab.backends.cuda.device.stream import CudaStream

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice


class CudaEvent:
    """Records events on the device's streams; for the dispatcher thread, but `reached`."""

    def __init__(self, device: "CudaDevice") -> None:
        self._index = device.index
        self._clock = device.clock()

    def record(self, stream: CudaStream) -> TimedEvent:
        """Record an event (cudaEventRecord)."""
        return self._clock.mark(stream)

    def wait(self, stream: CudaStream, mark: TimedEvent) -> None:
        """Have a stream wait on the device (cudaStreamWaitEvent)."""
        runtime.streamWaitEvent(stream.ptr, mark.ptr)

    def clear(self, out: Any) -> None:
        """Write zeros, on the active stream."""
        out.fill(0)

    def reached(self, mark: TimedEvent) -> bool:
        """Tell whether it has fired (cudaEventQuery); any thread.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        runtime.setDevice(self._index)
        return fired(runtime.eventQuery(mark.ptr))

    def elapsed_ms(self, start: TimedEvent, end: TimedEvent) -> float:
        """Return the difference (cudaEventElapsedTime)."""
        elapsed: float = runtime.eventElapsedTime(start.ptr, end.ptr)
        return elapsed

    def moment(self, mark: TimedEvent) -> float:
        """Return when it has fired, in wall seconds."""
        at = self._clock.read(mark)
        assert at is not None, "the event has fired"
        return at
