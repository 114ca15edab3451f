"""How cards reach each other, as NVML tells without opening a CUDA context."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Any

from accel_lab.compute.peers.link import NVLINK, Link

PCI = Path("/sys/bus/pci/devices")

_READ, _NVLINK = 0, 2
"""`nvmlGpuP2PCapsIndex_t`; pynvml's own name for the first is a tuple."""


def links_of(names: Mapping[int, str], nvml: Any = None) -> dict[tuple[str, str], Link]:
    """Return the link of each ordered pair of cards, given by their numbers among the visible ones.

    What the driver does not tell is unknown, and counts as not reachable. Blocks for some
    milliseconds.
    """
    if nvml is None:
        nvml = import_module("pynvml")
    nvml.nvmlInit()
    try:
        handles = {index: handle_of(nvml, index) for index in names}
        return {
            (names[a], names[b]): _link(nvml, handles[a], handles[b])
            for a, b in permutations(names, 2)
        }
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def handle_of(nvml: Any, index: int) -> Any:
    """Return the card that a context of this number opens: CUDA_VISIBLE_DEVICES may choose."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    entry = str(index) if chosen is None else chosen.split(",")[index].strip()
    if entry.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(entry))
    return nvml.nvmlDeviceGetHandleByUUID(entry)


def _link(nvml: Any, source: Any, target: Any) -> Link:
    def peer(capability: int) -> bool:
        status = _told(nvml, partial(nvml.nvmlDeviceGetP2PStatus, source, target, capability))
        return status is not None and status == nvml.NVML_P2P_STATUS_OK

    reachable = peer(_READ)
    numa = _node(nvml, source), _node(nvml, target)
    if peer(_NVLINK):
        return Link(NVLINK, reachable, _nvlinks(nvml, source, target), numa)
    names = {
        nvml.NVML_TOPOLOGY_INTERNAL: "PIX",
        nvml.NVML_TOPOLOGY_SINGLE: "PIX",
        nvml.NVML_TOPOLOGY_MULTIPLE: "PXB",
        nvml.NVML_TOPOLOGY_HOSTBRIDGE: "PHB",
        nvml.NVML_TOPOLOGY_NODE: "NODE",
        nvml.NVML_TOPOLOGY_SYSTEM: "SYS",
    }
    level = _told(nvml, partial(nvml.nvmlDeviceGetTopologyCommonAncestor, source, target))
    return Link(names.get(level, ""), reachable, numa=numa)


def _nvlinks(nvml: Any, source: Any, target: Any) -> int:
    """Count the active NVLinks to a card, or, where switches are between, to these."""
    bus = _bus(nvml, target)
    direct = active = 0
    for number in range(nvml.NVML_NVLINK_MAX_LINKS):
        if not _told(nvml, partial(nvml.nvmlDeviceGetNvLinkState, source, number)):
            continue
        active += 1
        remote = _told(nvml, partial(nvml.nvmlDeviceGetNvLinkRemotePciInfo, source, number))
        direct += remote is not None and _text(remote.busId) == bus
    return direct or active


def _node(nvml: Any, card: Any) -> int | None:
    """Return the NUMA node of a card; None where the machine does not tell."""
    bus = _bus(nvml, card).lower()
    domain, _, rest = bus.partition(":")
    with suppress(OSError, ValueError):
        node = int((PCI / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
        return node if node >= 0 else None
    return None


def _bus(nvml: Any, card: Any) -> str:
    """Return the address on the PCI bus, as `00000000:3B:00.0`; empty where it is not told."""
    info = _told(nvml, partial(nvml.nvmlDeviceGetPciInfo, card))
    return "" if info is None else _text(info.busId)


def _text(told: bytes | str) -> str:
    return told.decode() if isinstance(told, bytes) else told


def _told(nvml: Any, ask: Callable[[], Any]) -> Any:
    """Return what the driver answers; None where it has no answer for this card."""
    with suppress(nvml.NVMLError):
        return ask()
    return None
