"""The side channel to a context process: binding, arena segments, heartbeats, deadlines.

It is a SEQPACKET socket beside the wire, with a thread of its own in the context, so that it
works while the dispatcher is busy or stuck. Descriptors of arena segments travel on it.
"""

import array
import contextlib
import socket
from typing import Any, TypeAlias

import msgspec

PACKET_BYTES = 64 << 10


class Bind(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Become the context of a device; the first packet a process gets."""

    backend: str
    index: int
    generation: int
    limit_bytes: int | None
    spin_s: float
    sys_path: list[str]
    folder: str


class Segment(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """An arena segment; its descriptor comes with the packet."""

    id: int
    size: int


class DropSegment(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Forget an arena segment."""

    id: int


class CancelRequests(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Do not begin these requests."""

    seqs: list[int]


class Preloaded(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Everything is imported; the process waits for its device."""


class StartFailed(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The device could not be opened."""

    kind: str
    text: str


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """The process lives: what it executes, what it holds."""

    seq: int
    used_bytes: int
    buffers: int
    waits: int


class Expired(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """A request has run longer than it may."""

    seq: int
    timeout_s: float


Downward: TypeAlias = Bind | Segment | DropSegment | CancelRequests
Upward: TypeAlias = Preloaded | StartFailed | Heartbeat | Expired

_encode = msgspec.msgpack.Encoder().encode
_downward = msgspec.msgpack.Decoder(Downward)
_upward = msgspec.msgpack.Decoder(Upward)


def send_packet(channel: socket.socket, packet: Downward | Upward, fd: int = -1) -> bool:
    """Send one packet, with a descriptor if given; False when the other end is gone."""
    ancillary: list[Any] = []
    if fd >= 0:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    with contextlib.suppress(OSError):
        channel.sendmsg([_encode(packet)], ancillary, socket.MSG_NOSIGNAL)
        return True
    return False


def receive_upward(channel: socket.socket) -> Upward | None:
    """Return the next packet from a context, None when there is none now.

    Raises:
        EOFError: the context is gone.
    """
    try:
        data = channel.recv(PACKET_BYTES, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        raise EOFError from error
    if not data:
        raise EOFError
    packet: Upward = _upward.decode(data)
    return packet


def receive_downward(channel: socket.socket) -> tuple[Downward, int]:
    """Block for the next packet from the notebook; returns it with its descriptor or -1.

    Raises:
        EOFError: the notebook's process is gone.
    """
    try:
        data, ancillary, _, _ = channel.recvmsg(
            PACKET_BYTES, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC
        )
    except OSError as error:
        raise EOFError from error
    if not data:
        raise EOFError
    fd = -1
    for _, _, payload in ancillary:
        fd = array.array("i", payload[:4])[0]
    return _downward.decode(data), fd
