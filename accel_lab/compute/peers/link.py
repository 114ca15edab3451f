"""How one device reaches another one's memory, and how far that is."""

from typing import NamedTuple, Protocol

SAME = "same device"
SHARED = "shared memory"
NVLINK = "NVLink"

STEPS: dict[str, float] = {
    SAME: 0,
    SHARED: 1,
    NVLINK: 1,
    "PIX": 2,
    "PXB": 3,
    "PHB": 4,
    "NODE": 5,
    "SYS": 6,
}
"""How far a kind of link reaches. NVIDIA's names for PCIe, as `nvidia-smi topo -m` has them: one
switch, several switches, the bridge of the processor, within its NUMA node, and across nodes."""
APART = 10.0
"""What is added where neither reads the other's memory: a copy goes by the host then."""


class Link(NamedTuple):
    """How a device reaches the memory of another one.

    Attributes:
        kind: `shared memory` on the host; `NVLink`, or how far it is over PCIe, on cards; empty
            where nothing tells.
        reachable: whether the one can read what the other has, or, on the host, share memory.
        nvlinks: how many NVLinks there are between the two, or to the switch between them.
        numa: the NUMA node of each, None where that is not known.
    """

    kind: str
    reachable: bool
    nvlinks: int = 0
    numa: tuple[int | None, int | None] = (None, None)

    @property
    def text(self) -> str:
        """It in few words, as `18 NVLink`."""
        name = f"{self.nvlinks} {self.kind}" if self.nvlinks else self.kind or "unknown"
        return name if self.reachable else f"{name}, not reachable"


class Distance(Protocol):
    """What says how far two devices, by their names, are from each other."""

    def __call__(self, a: str, b: str, /) -> float:
        """Return a number that grows with the distance; 0 for one and the same."""


def distance(link: Link) -> float:
    """Return how far a link reaches: 0 is the same device, and more NVLinks are nearer."""
    far = STEPS.get(link.kind, max(STEPS.values()) + 1)
    if link.nvlinks:
        far = 1 / link.nvlinks
    return far if link.reachable else far + APART
