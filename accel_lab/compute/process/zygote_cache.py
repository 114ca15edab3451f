"""The zygote of a system that was closed, which the next system of this process may take.

What it has imported need not be imported again. It ends with this process, and when nobody has
taken it for a minute. One is kept at most.
"""

import atexit
import os
import resource
import socket
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from accel_lab.compute.process.environment import variables
from accel_lab.compute.process.interpreter import interpreter

KEPT_S = 60.0
THREAD = "accel_lab zygote"
"""The name of the thread that ends it, and reaps it, when nobody has taken it."""
_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})


class Birth(NamedTuple):
    """What a zygote has of the process that starts it; one that has other is of no use."""

    backend: str
    variables: Mapping[Any, Any]
    cores: frozenset[int]
    limits: tuple[tuple[int, int], ...]
    python: str
    sources: Mapping[str, tuple[int, int]]


class _Kept(NamedTuple):
    birth: Birth
    child: subprocess.Popen[bytes]
    channel: socket.socket
    owner: int
    expiry: threading.Timer


_kept: list[_Kept] = []
_taking = threading.RLock()  # a finalizer of the user's may open or close a system in the middle


def birth_of(backend: str, folder: Path) -> Birth:
    """Return what a zygote that is started now has of this process.

    Parameters:
        folder: where the modules of the backend are.
    """
    limits = tuple(map(resource.getrlimit, _LIMITS))
    cores = frozenset(os.sched_getaffinity(0))
    return Birth(backend, variables(), cores, limits, interpreter(), _sources(folder))


def _sources(folder: Path) -> dict[str, tuple[int, int]]:
    """Return when modules were written and how long they are, which Python looks at, too."""
    found: dict[str, tuple[int, int]] = {}
    for path in folder.rglob("*.py"):
        with suppress(FileNotFoundError):  # an editor has just taken it away
            at = path.stat()
            found[str(path)] = at.st_mtime_ns, at.st_size
    return found


def keep(birth: Birth, child: subprocess.Popen[bytes], channel: socket.socket) -> None:
    """Keep a zygote that has no contexts and no longer ends with the thread that started it."""
    expiry = threading.Timer(KEPT_S, _expire, [child])
    expiry.name, expiry.daemon = THREAD, True
    with _taking:
        before, _kept[:] = _kept[:], [_Kept(birth, child, channel, os.getpid(), expiry)]
    _end(before)
    try:
        expiry.start()
    except RuntimeError:  # no thread can be had
        end()


def take(birth: Birth) -> tuple[subprocess.Popen[bytes], socket.socket] | None:
    """Return the one that is kept, if it is as one that is started now; else that ends."""
    for one in (found := _taken()):
        if one.owner == os.getpid() and one.birth == birth and one.child.poll() is None:
            one.expiry.cancel()
            return one.child, one.channel
    _end(found)
    return None


def numbers() -> list[int]:
    """Return the process number of the one that is kept, in a list; an empty one without."""
    return [one.child.pid for one in _kept]


def descriptors() -> list[int]:
    """Return the descriptor through which it is asked, in a list."""
    return [one.channel.fileno() for one in _kept]


@atexit.register
def end() -> None:
    """End the one that is kept."""
    _end(_taken())


def _expire(child: subprocess.Popen[bytes]) -> None:
    _end(_taken(child))


def _taken(child: subprocess.Popen[bytes] | None = None) -> list[_Kept]:
    """Return the one that is kept, in a list, unless another is meant; it is kept no more."""
    with _taking:
        found = [one for one in _kept if child in (None, one.child)]
        if found:
            _kept.clear()
    return found


def _end(found: list[_Kept]) -> None:
    for one in found:
        if one.owner == os.getpid():  # a fork of that process has no children of its
            one.expiry.cancel()
            one.child.kill()
            one.child.wait()
            one.channel.close()
