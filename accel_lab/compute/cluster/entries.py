"""What a relay and a node tell each other, in batches.

Contexts have the numbers of the notebook's system. Data is a NumPy array of bytes, so that a batch
with much of it is taken to the cluster's object store without another copy.
"""

from typing import NamedTuple, TypeAlias

from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.compute.wire.side_channel import Downward, Upward


class Region(NamedTuple):
    """Some bytes of the arena."""

    segment: int
    start: int
    nbytes: int


class Take(NamedTuple):
    """Start a context process."""

    number: int


class Tell(NamedTuple):
    """Pass this packet on, on the context's control channel."""

    number: int
    packet: Downward


class Frame(NamedTuple):
    """A frame of a context's wire; either way.

    Attributes:
        reads: by the number of a request, what the context writes to the arena before it answers.
    """

    number: int
    data: bytes
    reads: dict[int, Region]


class Fill(NamedTuple):
    """These bytes stand there in the arena now; either way."""

    segment: int
    start: int
    data: Bytes


class End(NamedTuple):
    """End the wire of a context, so that it ends by itself."""

    number: int


class Kill(NamedTuple):
    """Kill a context."""

    number: int


class Forked(NamedTuple):
    """A context has this number among the processes of its machine."""

    number: int
    pid: int


class Heard(NamedTuple):
    """A context has said this on its control channel."""

    number: int
    packet: Upward


class Printed(NamedTuple):
    """A context's C code, or a child of it, has written this; `stream` is `stdout` or `stderr`."""

    number: int
    stream: str
    data: bytes


class Exited(NamedTuple):
    """A context has ended and is reaped; `executing` are the two words of its wire."""

    number: int
    status: str
    executing: tuple[int, int]


class Unloadable(NamedTuple):
    """No context can start there: the backend cannot be imported."""

    why: str


Down: TypeAlias = Take | Tell | Frame | Fill | End | Kill
Up: TypeAlias = Forked | Heard | Frame | Fill | Printed | Exited | Unloadable
