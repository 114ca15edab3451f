"""What the namespace can do: its devices, its dtypes and its limits."""

from typing import Any

from accel_lab import open_systems
from accel_lab.array_api.devices import default_device, device_or_default
from accel_lab.array_api.dtypes import DTYPES, complex128, float64, int64, isdtype
from accel_lab.compute.arrays.named_dtype import NamedDType
from accel_lab.compute.device import Device
from accel_lab.libraries.authoring.shape import MAX_NDIM


class NamespaceInformation:
    """Answers what the standard has asked of a namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return what the namespace can and cannot do."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": MAX_NDIM,
        }

    def default_device(self) -> Device:
        """Return the device on which functions without operands make arrays."""
        return default_device()

    def devices(self) -> tuple[Device, ...]:
        """Return the devices of every open system."""
        default = default_device()
        open_ = [device for system in open_systems.running() for device in system.devices]
        return tuple(open_) if default in open_ else (default, *open_)

    def default_dtypes(self, *, device: object = None) -> dict[str, NamedDType]:
        """Return the dtypes that functions make when none is given."""
        device_or_default(device)
        return {
            "real floating": float64,
            "complex floating": complex128,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: object = None, kind: Any = None) -> dict[str, NamedDType]:
        """Return the dtypes of the standard, or those of a kind, by name."""
        device_or_default(device)
        return {str(one): one for one in DTYPES if kind is None or isdtype(one, kind)}


def __array_namespace_info__() -> NamespaceInformation:  # noqa: N807 - the standard's name
    """Return what the namespace can do."""
    return NamespaceInformation()
