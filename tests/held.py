"""What this process holds, by name: what is new shows, whatever ends meanwhile."""

import contextlib
import threading
from pathlib import Path
from typing import NamedTuple

from accel_lab.compute.process import zygote_cache


class Held(NamedTuple):
    """What was open, and what ran."""

    descriptors: set[tuple[str, str]]
    threads: set[threading.Thread]

    def more(self) -> tuple[set[tuple[str, str]], set[threading.Thread]]:
        """Return what has been opened or started since, and is still there."""
        now = held()
        return now.descriptors - self.descriptors, now.threads - self.threads


NOTHING: tuple[set[tuple[str, str]], set[threading.Thread]] = set(), set()


def held() -> Held:
    """Return what is held now, without what is there for a zygote that is kept."""
    threads = {one for one in threading.enumerate() if one.name != zygote_cache.THREAD}
    return Held(descriptors(), threads)


def descriptors() -> set[tuple[str, str]]:
    """Return what is open, by number and name, without what leads to a zygote that is kept."""
    kept = {str(fd) for fd in zygote_cache.descriptors()}
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that this list was read from
            if one.name not in kept:
                found.add((one.name, str(one.readlink())))
    return found
