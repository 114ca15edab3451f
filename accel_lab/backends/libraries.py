"""What a backend has for each library: found by name, so that no backend lists them.

The library `fft` of `host` is the class `HostFft` of `backends/host/fft.py`, or of the `library.py`
in a folder of that name. A constructor with a parameter `device` is given the backend's device.

Runs in a context's process.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from accel_lab.backends import parts_of
from accel_lab.errors import BackendUnavailable
from accel_lab.library_modules import LIBRARIES, class_name, module_of

OPTIONAL = frozenset({"statistics", "give_way", "trim", "close", "languages"})
"""What a context asks libraries for without a message, and not each has."""
_NO_FILE = "cannot open shared object file"
"""What the loader says of a shared library that is not there."""


def makers(
    backend: str, device: Any, absent: type[Exception] = ImportError
) -> dict[str, Callable[[], Any]]:
    """Return what makes each library that a backend has; it is imported when it is made.

    Parameters:
        absent: what it raises when it is made where its shared library is not there.
    """
    there = parts_of(backend)
    make = partial(_make, backend, device, absent)
    return {name: partial(make, name) for name in LIBRARIES if name in there}


def load(backend: str, absent: type[Exception] | None = None) -> None:
    """Import a backend's part of every library.

    Parameters:
        absent: for what cause a library may fail to load: its messages are refused then.

    Raises:
        ImportError: a package or a shared library is missing.
    """
    for library in makers(backend, None):
        try:
            module_of(library, f"backends.{backend}")
        except ImportError as error:
            if absent is None or not (
                isinstance(error.__cause__, absent) or _NO_FILE in str(error)
            ):
                raise


def _make(backend: str, device: Any, absent: type[Exception], library: str) -> Any:
    try:
        kind = getattr(
            module_of(library, f"backends.{backend}"), class_name(library, backend.title())
        )
        return kind(device) if "device" in inspect.signature(kind).parameters else kind()
    except (ImportError, absent) as error:  # `load` has let it pass
        return Absent(f"{library} cannot be loaded on {backend}: {error}")


class Absent:
    """Stands for a library that could not be loaded: what a message wants of it is refused.

    Parameters:
        why: the refusal's text.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def __getattr__(self, name: str) -> Any:
        if name in OPTIONAL:
            raise AttributeError(name)
        raise BackendUnavailable(self._why)
