"""Whose connections a page on a loopback port takes: every user of a machine can reach it.

The kernel's tables of connections tell which user opened the other end.
"""

import ipaddress
import os
import pwd
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from accel_lab.errors import InvalidArgument

_TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
_MAPPED = bytes(10) + b"\xff\xff"
_TRIES = 3  # a row can be missed while others come and go


class Visitors:
    """Those who may look: the user of this process, root, and whom that user names.

    Parameters:
        users: names or numbers of other users.

    Raises:
        InvalidArgument: there is no such user.
    """

    def __init__(self, users: Sequence[str] = ()) -> None:
        self._welcome = frozenset({os.geteuid(), 0, *map(_uid, users)})

    def may_look(self, connection: socket.socket) -> bool:
        """Whether a connection is from somebody welcome; reads the kernel's tables.

        One from another machine is, for the server listens to other machines only where its user
        has said so.
        """
        theirs, ours = connection.getpeername()[:2], connection.getsockname()[:2]
        user = owner_of(theirs, ours)
        if user is not None:
            return user in self._welcome
        return theirs[0] != ours[0] and not ipaddress.ip_address(_plain(theirs[0])).is_loopback


def owner_of(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """Return the number of the user who has the other end of a connection on this machine.

    None when no process of this machine has it.
    """
    wanted = {
        (there, here)
        for there, here in zip(_forms(*theirs), _forms(*ours), strict=True)
        if there and here
    }
    for _ in range(_TRIES):
        for there, here, user in _rows():
            if (there, here) in wanted:
                return user
    return None


def _rows() -> Iterator[tuple[str, str, int]]:
    """Read (local address, remote address, user) of the connections of this machine."""
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:  # without IPv6 there is no such table
            continue
        for line in lines:
            fields = line.split()
            yield fields[1], fields[2], int(fields[7])


def _forms(host: str, port: int) -> tuple[str, str]:
    """Write an address as the tables do: as IPv4, or "" where it is none, and as IPv6."""
    packed = ipaddress.ip_address(_plain(host)).packed
    if len(packed) == 4:  # noqa: PLR2004 - bytes of IPv4
        return _form(packed, port), _form(_MAPPED + packed, port)
    short = packed.removeprefix(_MAPPED)
    return _form(short, port) if short != packed else "", _form(packed, port)


def _form(packed: bytes, port: int) -> str:
    words = "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", packed))
    return f"{words}:{port:04X}"


def _plain(host: str) -> str:
    return host.partition("%")[0]


def _uid(user: str) -> int:
    try:
        return int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        raise InvalidArgument(f"there is no user {user!r} on this machine") from None
