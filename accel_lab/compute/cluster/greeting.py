"""What has to be the same on both sides, for each reads what the other writes."""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple


class Greeting(NamedTuple):
    """What runs in a process."""

    python: str
    accel_lab: str


def greeting() -> Greeting:
    """Return that of this process."""
    try:
        ours = version("accel-lab")
    except PackageNotFoundError:
        ours = "of a source folder"
    return Greeting(f"{sys.version_info.major}.{sys.version_info.minor}", ours)
