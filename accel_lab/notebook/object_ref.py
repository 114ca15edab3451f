"""An object that stays in a context, at a name of the notebook's."""

from html import escape
from typing import TYPE_CHECKING, Any

from accel_lab.compute import workspace
from accel_lab.compute.workspace import Resident
from accel_lab.display.sizes import size

if TYPE_CHECKING:
    from accel_lab.compute.device import Device


class ObjectRef:
    """Stands for an object in a device's context; in a `%%gpu` cell it is the object itself.

    It may be an argument of `device.run`, too, and anywhere inside one.
    """

    def __init__(self, device: "Device", space: str, resident: Resident, generation: int) -> None:
        self.device = device
        self.generation = generation
        self._space = space
        self._resident = resident

    @property
    def name(self) -> str:
        """What the cells call it."""
        return self._resident.name

    @property
    def type(self) -> str:
        """Its type, as text."""
        return self._resident.kind

    @property
    def nbytes(self) -> int:
        """The memory of the device that it is seen to hold, in bytes, when its cell had run."""
        return self._resident.nbytes

    def get(self, timeout_s: float | None = 60.0) -> Any:
        """Return a copy of the object; blocks until it is here.

        Raises:
            StaleRef: it is gone, with its context or otherwise.
            UserCodeError: it does not pickle.
        """
        return self.device.run(_itself, self, pure=True).result(timeout_s)

    def drop(self) -> None:
        """Have the context forget it; does not block."""
        resident = self._resident
        self.device.run(workspace.drop, self._space, resident.name, resident.serial)

    def __reduce__(self) -> tuple[Any, ...]:
        resident = self._resident
        return workspace.resident, (self._space, resident.name, resident.serial)

    def _title(self) -> str:
        held = f", {size(self.nbytes)} of device memory" if self.nbytes else ""
        gone = "" if self.generation == self.device.generation else ", lost with its context"
        return f"{self.type} {self.name!r} on {self.device.name}{held}{gone}"

    def __repr__(self) -> str:
        return f"<ObjectRef {self._title()}: {self._resident.text}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._title())}</p><pre>{escape(self._resident.text)}</pre>"


def _itself(value: Any) -> Any:
    return value
