"""Facts that hold for a whole session, written before everything else of it."""

import os
import platform
import socket
import time
from importlib.metadata import PackageNotFoundError, version

import msgspec

from accel_lab.journal.entries.entry import SCHEMA
from accel_lab.journal.stores.group import Group

_encode = msgspec.msgpack.Encoder().encode


def _own_version() -> str:
    try:
        return version("accel-lab")
    except PackageNotFoundError:  # run from a checkout
        return ""


class Facts(msgspec.Struct, frozen=True):
    """One system: what it ran, and on what.

    Attributes:
        system: its name.
        backend: as `host` or `cuda`.
        devices: the models by the devices' names, as far as they were known.
        versions: of the libraries and the driver, by name.
        pid: of the process that owned it.
        host: the machine's name.
        started: when it was opened, in seconds since 1970.
        schema: the version of what the session's groups hold.
        accel_lab: the version that wrote them.
    """

    system: str
    backend: str
    devices: dict[str, str]
    versions: dict[str, str]
    started: float = msgspec.field(default_factory=time.time)
    pid: int = msgspec.field(default_factory=os.getpid)
    host: str = msgspec.field(default_factory=socket.gethostname)
    python: str = msgspec.field(default_factory=platform.python_version)
    schema: int = SCHEMA
    accel_lab: str = msgspec.field(default_factory=_own_version)

    def group(self, session: str, at: float) -> Group:
        """Return the first group of a session."""
        return Group(0, session, "", at, 1, _encode(self), 0, 1)
