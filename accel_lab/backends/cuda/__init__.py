"""NVIDIA GPUs: CuPy's arrays and memory, and the vendor's own libraries.

This module is light. The notebook's process imports it and asks NVML; only `preload` and
`open_backend`, which run in a context process, import CUDA.

Runs in both.
"""

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from typing import TYPE_CHECKING

from accel_lab.backends.cuda.device.cards import cards
from accel_lab.backends.cuda.support import SUPPORT
from accel_lab.display.install import pip_install

if TYPE_CHECKING:
    from accel_lab.backends.cuda.activity import CuptiActivity
    from accel_lab.compute.execution.backend import Backend
    from accel_lab.compute.peers.link import Link
    from accel_lab.compute.suspension.process_keeping import ProcessKeeper

__all__ = [
    "SUPPORT",
    "available",
    "device_count",
    "device_name",
    "open_activity",
    "open_backend",
    "peer_links",
    "preload",
    "process_keeper",
    "versions",
]

NEWEST_MAJOR = 13
OLDEST_MAJOR = 12


def available() -> str | None:
    """Return why this backend cannot run here and what to do about it; None when it can.

    Imports no CUDA package; blocks for some milliseconds.
    """
    found = cards()
    if found.reason:
        return found.reason
    if found.cuda_major < OLDEST_MAJOR:
        return f"the driver runs CUDA {found.cuda_major} and {OLDEST_MAJOR} is needed; update it"
    major = min(found.cuda_major, NEWEST_MAJOR)
    command = pip_install(f"cuda{major}")
    missing = [name for name in ("cupy", "nvmath") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} cannot be imported; {command}"
    newer = [f"cupy-cuda{m}x" for m in range(major + 1, NEWEST_MAJOR + 1) if _has(f"cupy-cuda{m}x")]
    if newer:
        return (
            f"{newer[0]} needs a newer driver than this one for CUDA {found.cuda_major}; "
            f"pip uninstall {newer[0]}, then {command}"
        )
    return None


def device_count() -> int:
    """Return the number of cards that CUDA would show, without opening it."""
    return cards().number


def device_name(index: int) -> str:
    """Return the name of a card, as `gpu0`: the first that `nvidia-smi` lists, of the visible."""
    return f"gpu{index}"


def peer_links(indices: list[int]) -> "dict[tuple[str, str], Link]":
    """Return how each card reaches each other one, as NVML tells; opens no device."""
    from accel_lab.backends.cuda.links import links_of

    return links_of({index: device_name(index) for index in indices})


def versions() -> dict[str, str]:
    """Return the versions of the driver and of what computes, by name; opens no device."""
    names = ("cupy-cuda12x", "cupy-cuda13x", "nvmath-python", "cuda-core", "cuda-bindings")
    found = {name: distribution(name).version for name in names if _has(name)}
    return {"driver": cards().driver, **found}


def preload() -> None:
    """Import all that a context needs and load its libraries, but do not touch the device.

    None of it calls cuInit, so the process holds no device memory.
    """
    from accel_lab.backends.cuda.loading import load

    load()


def open_activity(*, calls: bool) -> "CuptiActivity":
    """Begin to record what the device does, by CUPTI; in a context, after its backend is open.

    Parameters:
        calls: record also each call of CUDA.
    """
    from accel_lab.backends.cuda.activity import CuptiActivity

    return CuptiActivity(calls=calls)


def open_backend(index: int) -> "Backend":
    """Open a card for the calling thread, which becomes its dispatcher; about 0.2 s."""
    from accel_lab.backends.cuda.device.device import CudaDevice

    return CudaDevice(index)


def process_keeper(index: int) -> "ProcessKeeper":
    """Return what has a context process give its card back, and take it again."""
    from accel_lab.backends.cuda.checkpoint import CudaProcessKeeper

    return CudaProcessKeeper(index)


def _has(project: str) -> bool:
    try:
        distribution(project)
    except PackageNotFoundError:
        return False
    return True
