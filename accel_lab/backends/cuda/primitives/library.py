"""The class that the context's `primitives` actor calls."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import cupy

from accel_lab.backends.cuda.primitives.ordering import Orders
from accel_lab.backends.cuda.primitives.plans import Plans
from accel_lab.backends.cuda.primitives.recipes import recipes_of
from accel_lab.backends.cuda.primitives.reduction import Reductions
from accel_lab.backends.cuda.primitives.selection import Selections

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice


class CudaPrimitives(Reductions, Orders, Selections):
    """Enqueues on the device's active stream; used by the dispatcher thread, or one beside it."""

    def __init__(self, device: "CudaDevice") -> None:
        self._plans = Plans(cupy.cuda.Device(device.index).compute_capability)

    def missing(self, m: Any) -> Callable[[], None] | None:
        """Return what compiles what a message needs, or None where that is there; takes seconds."""
        lacking = self._plans.lacking(recipes_of(m))
        return (lambda: self._plans.build(lacking)) if lacking else None

    def statistics(self) -> Mapping[str, int]:
        """Count algorithms, and how often the disk had one."""
        plans = self._plans
        return {
            "plans": len(plans),
            "cache hits": plans.found,
            "cache misses": plans.compiled,
        }

    def close(self) -> None:
        """Unload what is loaded."""
        self._plans.close()
