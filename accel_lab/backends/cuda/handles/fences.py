"""Points on the active stream, behind which a plan may be destroyed."""

from typing import TYPE_CHECKING

from cupy.cuda import runtime

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice
    from accel_lab.backends.cuda.device.stream import CudaEvent

_NOT_READY = 600


class StreamFences:
    """Points on the device's active stream."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device

    def record(self) -> "CudaEvent":
        """Return the point after all that is enqueued."""
        return self._device.active.record()

    def passed(self, fence: "CudaEvent") -> bool:
        """Tell whether the device has passed it, or will never."""
        return bool(runtime.eventQuery(fence.ptr) != _NOT_READY)

    def wait(self, fence: "CudaEvent") -> None:
        """Block until the device has passed it."""
        runtime.eventSynchronize(fence.ptr)
