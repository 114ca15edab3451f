"""One folder per vendor, all with the same files; a folder here is a backend.

Only the process that opens a device imports what drives it; the notebook's reads `__init__.py`
and `support.py` alone. What all backends have for the same dtypes stands in `support.py` here.

Runs in both.
"""

import importlib
import pkgutil
from typing import Any

from accel_lab.compute.message.validation import require_count
from accel_lab.errors import BackendUnavailable, InvalidArgument

HOST_DEVICES = 64
"""How many devices of `host` may be asked for: they are processes, and share the CPU."""


def listed() -> list[str]:
    """Return the backends there are, whether or not they can run here: the folder's listing."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)


def parts_of(backend: str) -> set[str]:
    """Return the names of a backend's files and folders, some of which are its libraries."""
    folders = [f"{folder}/{backend}" for folder in __path__]
    return {found.name for found in pkgutil.iter_modules(folders)}


def load(backend: str, *, here: bool = True) -> tuple[str, Any]:
    """Return the name of a backend and its package; `auto` is the first that has a GPU here.

    That is `cuda`, then `wgpu`, whose adapter on the processor is for tests, then `host`.

    Parameters:
        here: whether it is to run on this machine.

    Raises:
        BackendUnavailable: it cannot run here; says what to install.
        InvalidArgument: there is none of this name.
    """
    known = listed()
    if backend == "auto":
        backend = _first()
    if backend not in known:
        text = f"{backend!r} is no backend; there are {', '.join(known)}"
        raise InvalidArgument(text)
    module = importlib.import_module(f"accel_lab.backends.{backend}")
    reason = module.available() if here else None
    if reason:
        text = f"the {backend} backend cannot run here: {reason}"
        raise BackendUnavailable(text)
    return backend, module


def _first() -> str:
    """Return the backend that a machine with these devices is best used by."""
    cuda = importlib.import_module("accel_lab.backends.cuda")
    if not cuda.available():
        return "cuda"
    wgpu = importlib.import_module("accel_lab.backends.wgpu")
    return "wgpu" if wgpu.has_hardware() else "host"


def indices(devices: int | list[int] | None, count: int, backend: str) -> list[int]:
    """Return which devices are meant by None for all `count`, by a number of them, or by a list.

    Raises:
        InvalidArgument: there are not so many.
    """
    if devices is None:
        return list(range(count))
    if isinstance(devices, list | tuple | range):
        asked = [require_count(one, "a device's index") for one in devices]
    else:
        asked = list(range(require_count(devices, "devices")))
    if len(set(asked)) < len(asked):
        raise InvalidArgument(f"devices={devices!r} names a device twice")
    limit = count if backend != "host" else HOST_DEVICES
    if not asked or not all(0 <= index < limit for index in asked):
        text = f"{devices!r} asks for devices that are not there: {backend} has {limit}"
        raise InvalidArgument(text)
    return asked
