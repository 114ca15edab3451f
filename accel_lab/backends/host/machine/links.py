"""How devices of `host` reach each other: by memory that their processes share."""

import os
from itertools import permutations
from pathlib import Path

from accel_lab.compute.peers.link import SHARED, Link

NODES = Path("/sys/devices/system/node")


def links_of(names: list[str], nodes: Path = NODES) -> dict[tuple[str, str], Link]:
    """Return the link of each ordered pair, with the NUMA node on which all of them run."""
    node = node_of(os.sched_getaffinity(0), nodes)
    link = Link(SHARED, reachable=True, numa=(node, node))
    return dict.fromkeys(permutations(names, 2), link)


def node_of(cpus: set[int], nodes: Path) -> int | None:
    """Return the NUMA node that has all of these processors; None where that is not known.

    Contexts run on the processors of this process, wherever the system puts them.
    """
    found = set()
    for folder in nodes.glob("node[0-9]*"):
        try:
            if not cpus.isdisjoint(_listed((folder / "cpulist").read_text())):
                found.add(int(folder.name.removeprefix("node")))
        except (OSError, ValueError):
            return None
    return found.pop() if len(found) == 1 else None


def _listed(text: str) -> set[int]:
    """Read a list as the kernel writes it: `0-3,8`."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
