"""How much memory this process may use: the machine's, or its control group's."""

import os
from collections.abc import Iterator
from pathlib import Path


def host_memory_bytes(root: Path = Path("/")) -> int:
    """Return physical memory, or less where a control group (v1 or v2) allows less.

    Reads files below `root`; any thread. A limit that cannot be read does not count.
    """
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min((physical, *_limits(root)))


def _limits(root: Path) -> Iterator[int]:
    for folder, name in _groups(root):
        try:
            text = (folder / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            yield int(text)


def _groups(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each control group of this process and its ancestors, with its limit's file."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = top / path.lstrip("/")
        yield from ((folder, name) for folder in (group, *group.parents) if top in folder.parents)
        yield top, name
