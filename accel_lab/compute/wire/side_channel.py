"""The side channel to a context process: binding, arena segments, heartbeats, deadlines.

It is a SEQPACKET socket beside the wire, with a thread of its own in the context, so that it
works while the dispatcher is busy or stuck. Descriptors of arena segments travel on it.
"""

import socket
from typing import TypeAlias

import msgspec

from accel_lab.compute.events.device_work import DeviceWork
from accel_lab.compute.events.samples import Block, Slice
from accel_lab.compute.machine import seqpacket
from accel_lab.compute.streams import Allocator, PerActor, Polled, Strategy

SPILLED = "bytes on the host"
"""Among the counters of `upload` in a heartbeat: what has given way to other buffers."""


class Bind(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Become the context of a device; the first packet a process gets.

    Names of files are encoded as the operating system has them: not all of them are text.
    """

    backend: str
    index: int
    generation: int
    limit_bytes: int | None
    spill_bytes: int
    spin_s: float
    fuse: bool
    sys_path: list[bytes]
    folder: bytes
    allocator: Allocator = PerActor()
    strategy: Strategy = Polled()
    trace: list[str] = []
    fallback: str = ""


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


class Look(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Say what memory the context has, what it has worked at, or both.

    `every` has all work traced, however much there is.
    """

    memory: bool
    work: bool
    every: bool = False


class Collected(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """What nobody could reach has been freed, and the wire has it: the answer to Crowded."""


class Keep(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Where to keep what the device has while it is suspended; the files come with the packet."""


class GroupWord(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """What became of a message to several devices.

    Attributes:
        why: the reason for which it is aborted; empty where all its parts are done.
        cancelled: whether somebody asked for that.
    """

    group: int
    why: str = ""
    cancelled: bool = False


class Flush(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Say what the device's own records have of it; `number` tells the answers apart."""

    number: int


class StartFailed(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The device could not be opened."""

    kind: str
    text: str


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """The process lives: what it holds, and its libraries' counters.

    For `unread_s` it has let frames lie although it was at nothing.
    """

    used_bytes: int
    statistics: dict[str, dict[str, int]]
    unread_s: float = 0.0


class Expired(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """A request has run longer than it may; `recent` is what the context ran last.

    With a `group` it is a part of that, and so long ago was that aborted.
    """

    seq: int
    timeout_s: float
    recent: list[str]
    group: int = 0


class Blocks(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Some of the context's blocks by address; `last` of an answer to Look."""

    blocks: list[Block]
    used_bytes: int
    free_bytes: int
    unlisted: int
    last: bool


class Traced(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """Some of what the context has worked at; `last` of an answer to Look."""

    done: list[Slice]
    running: list[Slice]
    dropped: int
    last: bool


class Recorded(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """Some of the device's own records; `last` of an answer to Flush.

    `why` says what has failed.
    """

    number: int
    works: list[DeviceWork]
    dropped: int
    last: bool
    why: str = ""


Downward: TypeAlias = (
    Bind | Segment | DropSegment | CancelRequests | Look | Collected | Keep | GroupWord | Flush
)
Upward: TypeAlias = StartFailed | Heartbeat | Expired | Blocks | Traced | Recorded

_encode = msgspec.msgpack.Encoder().encode
_downward = msgspec.msgpack.Decoder(Downward)
_upward = msgspec.msgpack.Decoder(Upward)


def send_packet(channel: socket.socket, packet: Downward | Upward, *fds: int) -> bool:
    """Send one packet with up to eight descriptors; False when the other end is gone."""
    try:
        seqpacket.send(channel, _encode(packet), list(fds))
    except OSError:
        return False
    return True


def receive_upward(channel: socket.socket) -> Upward | None:
    """Return the next packet from a context, None when there is none now.

    Raises:
        EOFError: the context is gone.
    """
    received = seqpacket.receive(channel, block=False)
    if received is None:
        return None
    packet: Upward = _upward.decode(received[0])
    return packet


def receive_downward(channel: socket.socket) -> tuple[Downward, list[int]]:
    """Block for the next packet from the notebook; returns it with its descriptors.

    Raises:
        EOFError: the notebook's process is gone.
    """
    received = seqpacket.receive(channel, block=True)
    assert received is not None
    data, fds = received
    return _downward.decode(data), fds
