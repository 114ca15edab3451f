"""Code that an error suggests, with the user's own names for the device and its system."""

import sys
from contextlib import suppress
from typing import Any, Protocol

from accel_lab.compute.residency.notebook_names import names, notebook

_RUNNING = "from accel_lab.open_systems import running"
_SYSTEM = "from accel_lab import default_system", "default_system()"


class Opened(Protocol):
    """A device, as far as it tells whose it is."""

    _system: Any


def typed(device: Opened | None, code: str) -> str:
    """Return code that works when it is typed in the notebook, or the script, that runs.

    Where no name leads to the device, it says `gpu` and `lab`, as the documentation does, unless
    these are names of something else, or a cell would not know them.

    Parameters:
        code: has `<gpu>` for the device, or `<lab>` for its system.
    """
    what = "gpu" if "<gpu>" in code else "lab"
    if device is None:
        return code.replace(f"<{what}>", what)
    system: Any = device._system  # noqa: SLF001 - who has opened it
    found = name_of(device if what == "gpu" else system)
    if not found and what == "gpu" and (lab := name_of(system)):
        found = f"{lab}.devices[{_place(device)}]"
    if not found and getattr(sys.modules.get("accel_lab.default"), "_system", None) is system:
        begin, found = _SYSTEM
        if what == "gpu" and "gpu" in names():  # another's, which is to stay
            found += ".devices[0]"
        elif what == "gpu":
            begin, found = "from accel_lab import gpu", "gpu"
        return f"{begin}; {code.replace(f'<{what}>', found)}"
    opened = _running()
    if not found and (what in names() or notebook() is not None) and system in opened:
        found = f"running()[{opened.index(system)}]"
        if what == "gpu":
            found += f".devices[{_place(device)}]"
        return f"{_RUNNING}; {code.replace(f'<{what}>', found)}"
    return code.replace(f"<{what}>", found or what)


def called(device: Opened | None, name: str) -> str:
    """Return a device's name, with its system's where another open system has one of that name."""
    system: Any = None if device is None else device._system  # noqa: SLF001 - who has opened it
    others = (one for one in _running() if one is not system)
    if system is None or not any(known.name == name for one in others for known in one.devices):
        return name
    return f"{name} of {system.name}"


def _running() -> list[Any]:
    """Return the open systems of this process, the oldest first."""
    opened = sys.modules.get("accel_lab.open_systems")
    return [] if opened is None else list(opened.running())


def _place(device: Opened) -> int:
    """Return which of its system's devices one is."""
    devices = device._system.devices  # noqa: SLF001 - who has opened it
    return next((place for place, one in enumerate(devices) if one is device), 0)


def name_of(value: object) -> str:
    """Return the user's newest name of an object; empty without one. Any thread."""
    with suppress(RuntimeError):  # the namespace changes at this moment
        for name, known in reversed(names().items()):
            if known is value and not name.startswith("_"):
                return name
    return ""
