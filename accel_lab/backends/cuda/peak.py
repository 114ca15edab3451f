"""How much memory of CuPy's pool was in use at most: counted where it is taken and given back."""

from collections.abc import Callable

import cupy

from accel_lab.compute.backend import Peak


class PeakHook(cupy.cuda.MemoryHook):  # type: ignore[misc]
    """Counts what the thread that entered it takes from the pool of one card.

    Attributes:
        used: bytes in use now.
        most: bytes in use at most.
    """

    name = "accel_lab peak"

    def __init__(self, device: int, used: int) -> None:
        self._device = device
        self.used = self.most = used

    # Called at each allocation of the user's code: names are faster than a dictionary.

    def malloc_postprocess(self, device_id: int, mem_size: int, mem_ptr: int, **_: int) -> None:
        """Count what was taken; CuPy calls it, with no address where it had no memory."""
        if device_id == self._device and mem_ptr:
            self.used = used = self.used + mem_size
            self.most = max(self.most, used)

    def free_postprocess(self, device_id: int, mem_size: int, **_: int) -> None:
        """Count what was given back."""
        if device_id == self._device:
            self.used -= mem_size


def watch_peak(device: int, used: int) -> Callable[[], Peak]:
    """Begin to watch in this thread; what this returns ends that, and tells."""
    hook = PeakHook(device, used)
    hook.__enter__()

    def tell() -> Peak:
        hook.__exit__()
        return Peak(used, hook.most, "in use")

    return tell
