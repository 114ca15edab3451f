"""How cards reach each other, by a driver that is made up: this machine may have none."""

from types import SimpleNamespace

import pytest

from accel_lab.backends.cuda.links import links_of
from accel_lab.compute.peers.link import Link, distance


class Refused(Exception):
    """What the driver has no answer for."""


class Info:
    def __init__(self, bus: str) -> None:
        self.busId = bus.encode()


def peers(source: int, target: int, capability: int) -> int:
    linked = {source, target} <= {0, 1, 2}
    return int(not (linked or (capability == READ and {source, target} == {2, 3})))


def ancestor(source: int, target: int) -> int:
    if {source, target} == {0, 3}:
        raise Refused
    return 30 if {source, target} == {2, 3} else 50


def link_state(card: int, link: int) -> int:
    if link >= 6:
        raise Refused
    return int(card == 2 or link < 4)


def remote(card: int, _: int) -> Info:
    return Info("00000000:FF:00.0") if card == 2 else bus_of(1 - card)


def bus_of(card: int) -> Info:
    return Info(f"00000000:0{card}:00.0")


READ, NVLINK = 0, 2
CALLS: list[str] = []
NVML = SimpleNamespace(
    NVMLError=Refused,
    NVML_P2P_STATUS_OK=0,
    NVML_NVLINK_MAX_LINKS=18,
    NVML_TOPOLOGY_INTERNAL=0,
    NVML_TOPOLOGY_SINGLE=10,
    NVML_TOPOLOGY_MULTIPLE=20,
    NVML_TOPOLOGY_HOSTBRIDGE=30,
    NVML_TOPOLOGY_NODE=40,
    NVML_TOPOLOGY_SYSTEM=50,
    nvmlInit=lambda: CALLS.append("open"),
    nvmlShutdown=lambda: CALLS.append("close"),
    nvmlDeviceGetHandleByIndex=int,
    nvmlDeviceGetP2PStatus=peers,
    nvmlDeviceGetTopologyCommonAncestor=ancestor,
    nvmlDeviceGetNvLinkState=link_state,
    nvmlDeviceGetNvLinkRemotePciInfo=remote,
    nvmlDeviceGetPciInfo=bus_of,
)
"""Four cards: 0 and 1 have four NVLinks, 2 has six to a switch, 3 is alone over PCIe.

Cards are given by their numbers, and links by theirs.
"""


def test_links_are_as_the_driver_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    CALLS.clear()
    found = links_of({index: f"gpu{index}" for index in range(4)}, NVML)
    links = {(a[-1], b[-1]): link._replace(numa=(None, None)) for (a, b), link in found.items()}
    assert len(links) == 12
    assert links["0", "1"] == links["1", "0"] == Link("NVLink", reachable=True, nvlinks=4)
    assert links["2", "0"] == Link("NVLink", reachable=True, nvlinks=6)
    assert links["2", "3"] == links["3", "2"] == Link("PHB", reachable=True)
    assert links["1", "3"] == Link("SYS", reachable=False)
    assert links["0", "3"] == Link("", reachable=False)
    near, switched, pcie, apart = (
        distance(links[pair]) for pair in (("2", "0"), ("0", "1"), ("2", "3"), ("1", "3"))
    )
    assert near < switched < pcie < apart
    assert CALLS == ["open", "close"]


def test_links_are_of_the_cards_that_cuda_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 2")
    found = links_of({0: "gpu0", 1: "gpu1"}, NVML)
    assert {link.kind for link in found.values()} == {"PHB"}
