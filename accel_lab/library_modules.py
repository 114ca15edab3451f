"""Which libraries there are, and where the modules of one stand.

A library is a file of `libraries`, or a folder there whose main file is `library.py`. Every other
floor has its part under the same name: `backends/host/fft.py`, `backends/cuda/fft/library.py`.

Runs in both.
"""

import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent / "libraries"

LIBRARIES = tuple(
    sorted(
        found.name for found in pkgutil.iter_modules([str(_FOLDER)]) if found.name != "authoring"
    )
)
"""The libraries by name, in the order in which contexts start them."""


def module_of(library: str, floor: str = "libraries") -> ModuleType:
    """Import the module of a library that stands on a floor, as `backends.host`.

    Raises:
        ModuleNotFoundError: the floor has none, or one of its imports is missing.
    """
    module = import_module(f"accel_lab.{floor}.{library}")
    return import_module(f"{module.__name__}.library") if hasattr(module, "__path__") else module


def class_name(library: str, prefix: str) -> str:
    """Return how a floor's class for a library is called, as `HostFft`."""
    return prefix + "".join(word.capitalize() for word in library.split("_"))
