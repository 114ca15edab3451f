"""The host backend: NumPy and SciPy in a supervised process. Runs everywhere, supports everything.

The notebook's process imports this file, so it imports nothing itself.

Runs in both.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from accel_lab.backends.host.support import SUPPORT

if TYPE_CHECKING:
    from accel_lab.compute.execution.backend import Backend
    from accel_lab.compute.peers.link import Link
    from accel_lab.compute.suspension.process_keeping import ProcessKeeper

__all__ = [
    "SUPPORT",
    "available",
    "device_count",
    "device_name",
    "open_backend",
    "peer_links",
    "preload",
    "process_keeper",
    "versions",
]


def available() -> str | None:
    """Return why this backend cannot run here: None, it always can."""
    return None


def device_count() -> int:
    """Return how many devices there are when nobody asks for more: one, but any can be opened."""
    return 1


def device_name(index: int) -> str:
    """Return the name of a device."""
    return f"cpu{index}"


def peer_links(indices: list[int]) -> "dict[tuple[str, str], Link]":
    """Return how each device reaches each other one: memory that their processes share."""
    from accel_lab.backends.host.machine.links import links_of

    return links_of([device_name(index) for index in indices])


def versions() -> dict[str, str]:
    """Return the versions of what computes, by name."""
    return {name: version(name) for name in ("numpy", "scipy")}


def preload() -> None:
    """Import what a context needs."""
    import accel_lab.backends.host.device  # noqa: F401
    from accel_lab.backends import libraries

    libraries.load("host")


def open_backend(index: int) -> "Backend":
    """Open a device in this process; all of them are this machine's memory and cores."""
    from accel_lab.backends.host.device import HostBackend

    return HostBackend(index)


def process_keeper(index: int) -> "ProcessKeeper":  # noqa: ARG001 - all are alike
    """Return what stops a context process, and has it go on."""
    from accel_lab.backends.host.machine.stopping import HostProcessKeeper

    return HostProcessKeeper()
