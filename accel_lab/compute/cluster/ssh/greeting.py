"""What the two sides say before the stream begins or goes on, a line of JSON each.

The far side says what it is; this side says what it wants; the far side says whether it does.
"""

import os
import select
import time
from typing import Any, TypeVar

import msgspec

MARK = b"accel_lab far side "
"""Begins the first line of ours, for a login shell may print some of its own before."""
LINE_BYTES = 64 << 10
T = TypeVar("T")


class Far(msgspec.Struct, frozen=True):
    """What the far side is."""

    python: str
    accel_lab: str
    program: str = ""


class Hello(msgspec.Struct, frozen=True):
    """What this side wants.

    Attributes:
        token: names the session, and nobody else knows it.
        resumes: whether it is there already.
        received: how many parcels of it have come here.
        backend, devices: as `System` was given them.
        grace_s: how long it is kept without a connection.
    """

    token: str
    resumes: bool = False
    received: int = 0
    backend: str = "auto"
    devices: int | list[int] | None = None
    grace_s: float = 0.0


class Welcome(msgspec.Struct, frozen=True):
    """Whether the far side does it.

    Attributes:
        refused: why not, and `kind` the error that it is; else empty.
        received: how many parcels have come there.
        backend, indices: what there is.
    """

    refused: str = ""
    kind: str = ""
    received: int = 0
    backend: str = ""
    indices: list[int] = []


GONE = "Gone"
"""The kind of a refusal when the session is there no more."""
FIRST_LIMIT_S = 30.0
"""So long it may take until what is wanted is said."""


def address(token: str) -> str:
    """Return where a session is asked for on its machine: a name that is in no file system."""
    return f"\0accel_lab far side {token}"


def write_line(fd: int, what: Any, mark: bytes = b"") -> None:
    """Write a line; raises OSError where nobody reads."""
    data = memoryview(mark + msgspec.json.encode(what) + b"\n")
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            select.select([], [fd], [], 1.0)


def read_line(fd: int, kind: type[T], until: float, mark: bytes = b"") -> T:
    """Read the line that begins with the mark, and not a byte more; others are passed over.

    Parameters:
        until: by the monotonic clock.

    Raises:
        TimeoutError: it has not come by then.
        EOFError: it does not come.
        ValueError: it is something else.
    """
    left = LINE_BYTES
    while True:
        line = _line(fd, until, left)
        left -= len(line)
        if mark in line:
            return msgspec.json.decode(line[line.index(mark) + len(mark) :], type=kind)


def _line(fd: int, until: float, limit: int) -> bytes:
    line = bytearray()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while len(line) < limit:
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            raise TimeoutError
        try:
            byte = os.read(fd, 1)
        except BlockingIOError:
            continue
        if not byte:
            raise EOFError
        if byte == b"\n":
            return bytes(line)
        line += byte
    raise ValueError(f"no line of ours is in the first {LINE_BYTES} bytes")
