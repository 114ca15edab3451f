"""Which version of the standard the namespace has, and the namespace for one that is asked for."""

import sys
from types import ModuleType

from accel_lab.errors import InvalidArgument

VERSION = "2025.12"
_SERVED = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)
"""Those that it serves: a later version keeps what an earlier one has."""


def namespace(version: str | None = None) -> ModuleType:
    """Return the namespace, for one who asks for this version of the standard.

    Raises:
        InvalidArgument: there is none of this version.
    """
    if version is not None and version not in _SERVED:
        text = f"there is no namespace of version {version!r} of the array API standard, but of "
        raise InvalidArgument(text + ", ".join(_SERVED))
    return sys.modules["accel_lab.array_api"]
