"""What the control group around this process leaves of the machine (versions 1 and 2)."""

import math
from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


class ControlGroup:
    """The groups this process is in, innermost first; the smallest limit of them counts."""

    def __init__(self, mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> None:
        self._mount = mount
        try:
            self._entries = membership.read_text().splitlines()
        except OSError:
            self._entries = []

    def memory_bytes(self) -> int | None:
        """Give the memory these groups may use, or None where nothing limits it."""
        names = {"": "memory.max", "memory": "memory.limit_in_bytes"}
        limits = [int(text) for text in self._read(names) if text.isdigit()]
        return min(limits, default=None)

    def cores(self) -> float | None:
        """Give the cores' worth of time these groups may use, or None where nothing limits it."""
        shares = [_share(text) for text in self._read({"": "cpu.max"})]
        quotas = self._read({"cpu": "cpu.cfs_quota_us"})
        periods = self._read({"cpu": "cpu.cfs_period_us"})
        shares += [
            _share(f"{quota} {period}") for quota, period in zip(quotas, periods, strict=False)
        ]
        share = min(shares, default=math.inf)
        return None if math.isinf(share) else share

    def _read(self, names: dict[str, str]) -> Iterator[str]:
        """Read a file, named by controller ("" for version 2), in each group up to the root."""
        for entry in self._entries:
            _, controllers, path = entry.split(":", 2)
            for controller in controllers.split(","):
                if controller not in names:
                    continue
                root = self._mount / controller
                group = root / path.lstrip("/")
                for folder in (group, *group.parents):
                    if not folder.is_relative_to(root):
                        break
                    file = folder / names[controller]
                    if file.is_file():
                        yield file.read_text().strip()


def _share(text: str) -> float:
    """Turn `quota period` into cores; `max` and -1 mean no limit."""
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdigit() else math.inf
