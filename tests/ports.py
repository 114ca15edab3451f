"""TCP ports of which no two test processes are given the same.

A kernel listens on its ports only a second after they were chosen.
"""

import itertools
import os
import socket
from contextlib import suppress
from random import SystemRandom
from typing import Any

from jupyter_client.connect import LocalPortCache

FIRST, COUNT, WORKERS = 20_000, 1_000, 12
"""Below those that Linux chooses from by itself, which begin at 32768."""

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
_begin = SystemRandom().randrange(COUNT)  # other runs on this machine have these workers, too
_numbers = (FIRST + _worker * COUNT + number % COUNT for number in itertools.count(_begin))


def free_port(ip: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on now, and that was not returned lately."""
    for port in itertools.islice(_numbers, COUNT):
        with suppress(OSError), socket.socket() as probe:
            probe.bind((ip, port))
            return port
    raise OSError(f"none of {COUNT} ports of {ip} is free")


def give_to_kernels() -> None:
    """Have the kernels that this process starts listen on such ports."""
    found: Any = lambda _, ip: free_port(ip)  # noqa: E731 - one line
    LocalPortCache.find_available_port = found  # type: ignore[method-assign]
