"""Code that an error suggests, with the user's own names for the device and its system."""

import sys
from contextlib import suppress
from typing import Any, Protocol

from accel_lab.compute.residency.notebook_names import names

_SYSTEM = "from accel_lab import default_system", "default_system()"


class Opened(Protocol):
    """A device, as far as it tells whose it is."""

    _system: Any


def typed(device: Opened | None, code: str) -> str:
    """Return code that works when it is typed in the notebook, or the script, that runs.

    Where no name leads to the device, it says `gpu` and `lab`, as the documentation does.

    Parameters:
        code: has `<gpu>` for the device, or `<lab>` for its system.
    """
    what = "gpu" if "<gpu>" in code else "lab"
    if device is None:
        return code.replace(f"<{what}>", what)
    system: Any = device._system  # noqa: SLF001 - who has opened it
    found = _name_of(device if what == "gpu" else system)
    if not found and what == "gpu" and (lab := _name_of(system)):
        place = next((n for n, one in enumerate(system.devices) if one is device), 0)
        found = f"{lab}.devices[{place}]"
    if not found and getattr(sys.modules.get("accel_lab.default"), "_system", None) is system:
        begin, found = _SYSTEM
        if what == "gpu" and "gpu" in names():  # another's, which is to stay
            found += ".devices[0]"
        elif what == "gpu":
            begin, found = "from accel_lab import gpu", "gpu"
        return f"{begin}; {code.replace(f'<{what}>', found)}"
    return code.replace(f"<{what}>", found or what)


def _name_of(value: object) -> str:
    """Return the user's newest name of an object; empty without one."""
    with suppress(RuntimeError):  # the namespace changes at this moment
        for name, known in reversed(names().items()):
            if known is value and not name.startswith("_"):
                return name
    return ""
