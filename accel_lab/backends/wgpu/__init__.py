"""Any GPU by WebGPU: Vulkan on Linux, by the package `wgpu`; Metal and D3D12 are not tried.

This module is light: the notebook's process imports it, and a process of its own asks for adapters.

Runs in both.
"""

from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from accel_lab.backends.wgpu.adapters import adapters, lacking, may_have_hardware, most_bound
from accel_lab.backends.wgpu.support import require_bound, table
from accel_lab.display.install import pip_install

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accel_lab.backends.wgpu.adapters import Adapter
    from accel_lab.compute.execution.backend import Backend
    from accel_lab.compute.message.operation import Operation
    from accel_lab.compute.peers.link import Link

__all__ = [
    "FALLS_BACK",
    "available",
    "device_count",
    "device_name",
    "has_hardware",
    "open_backend",
    "peer_links",
    "preload",
    "process_keeper",
    "require_possible",
    "versions",
]


FALLS_BACK = True
"""Whether the host may compute what this backend lacks: its device has `mirrors`."""
_opened: list[frozenset[str]] = []
"""What the adapters lack that this process has opened."""


def available() -> str | None:
    """Return why this backend cannot run here and what to do about it; None when it can.

    Opens no device in this process; takes some seconds the first time.
    """
    if find_spec("wgpu") is None:
        return f"wgpu cannot be imported; {pip_install('wgpu')}"
    if not adapters():
        return (
            "there is no adapter of Vulkan, Metal or D3D12; install the driver of the GPU, or on "
            "Debian mesa-vulkan-drivers, which computes on the processor"
        )
    return None


def has_hardware() -> bool:
    """Whether an adapter is a GPU; the processor's own is for tests."""
    if find_spec("wgpu") is None or not may_have_hardware():
        return False
    return any(one.kind != "CPU" for one in adapters())


def device_count() -> int:
    """Return how many adapters there are: GPUs, or where there is none the processor's."""
    found = [one for one in adapters() if one.kind != "CPU"]
    return len(found or adapters())


def device_name(index: int) -> str:
    """Return the name of a device, as `wgpu0`."""
    return f"wgpu{index}"


def peer_links(indices: list[int]) -> "dict[tuple[str, str], Link]":
    """Return how each device reaches each other one: by the host alone."""
    from accel_lab.compute.peers.link import Link

    names = [device_name(index) for index in indices]
    return {(a, b): Link("", reachable=False) for a in names for b in names if a != b}


def versions() -> dict[str, str]:
    """Return the versions of what computes, by name; opens no device."""
    found = {"wgpu": version("wgpu")} if find_spec("wgpu") else {}
    return {**found, **{f"driver of {one.name}": one.driver for one in adapters()}}


def preload() -> None:
    """Import what a context needs; opens no device."""
    import accel_lab.backends.wgpu.device.device  # noqa: F401
    from accel_lab.backends import libraries

    libraries.load("wgpu")


def open_backend(index: int) -> "Backend":
    """Open an adapter in this process; about half a second."""
    from accel_lab.backends.wgpu.device.device import WgpuDevice

    device = WgpuDevice(index)
    _opened.append(device.lacks)
    return device


def process_keeper(index: int) -> None:
    """Return nothing: no call of WebGPU takes a process's memory off its device."""


def require_possible(message: "Operation[Any]", spec: Any) -> None:
    """Refuse at the call what no adapter of this machine could be given.

    Parameters:
        spec: what is known of the result.

    Raises:
        InvalidArgument: it names what is larger than a binding, and does not go in parts.
    """
    if known := _known():
        require_bound(message, spec, max(most_bound(one.limits) for one in known))


def _known() -> "tuple[Adapter, ...]":
    """Return the adapters of this machine, once they have been asked for."""
    return adapters() if adapters.cache_info().currsize else ()


def __getattr__(name: str) -> "Mapping[str, frozenset[str]]":
    """Return SUPPORT: what all adapters of this machine have, once they have been asked for.

    In a context it is what its own adapter has.
    """
    if name == "SUPPORT":
        if _opened:
            return table(frozenset().union(*_opened))
        return table(frozenset().union(*(lacking(one.features) for one in _known())))
    raise AttributeError(name)
