"""How much memory this process may use, and has left: the machine's, or its control group's."""

import os
from collections.abc import Iterator
from pathlib import Path

_USED = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}


def host_memory_bytes(root: Path = Path("/")) -> int:
    """Return physical memory, or less where a control group (v1 or v2) allows less.

    Reads files below `root`; any thread. A limit that cannot be read does not count.
    """
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min((physical, *_limits(root)))


def free_host_bytes(root: Path = Path("/")) -> int:
    """Return how much could still be had: what is available, or less in a control group.

    Reads files below `root`; any thread. A limit that cannot be read does not count.
    """
    return max(0, min(_available(root), *_left(root), host_memory_bytes(root)))


def _available(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return host_memory_bytes(root)


def _left(root: Path) -> Iterator[int]:
    for folder, name in _groups(root):
        limit, used = _number(folder / name), _number(folder / _USED[name])
        if limit is not None and used is not None:
            yield limit - used + _reclaimable(folder)


def _reclaimable(folder: Path) -> int:
    """Return what of a group's memory caches files that are on a disk."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    counts = dict(line.split() for line in lines)
    return int(counts.get("inactive_file", 0))


def _limits(root: Path) -> Iterator[int]:
    for folder, name in _groups(root):
        limit = _number(folder / name)
        if limit is not None:
            yield limit


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


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
