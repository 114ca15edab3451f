"""What a system looks like at a moment, as facts: the views draw them, a recording keeps them."""

from typing import Any, ClassVar, Literal

import msgspec

from accel_lab.actor.events import Event
from accel_lab.compute.events.tree import Node

Work = Literal["kernel", "copy", "function", "untraced"]
"""The last is of several messages, of which none was traced by itself."""
Ended = Literal["", "done", "failed", "cancelled"]
"""How a cell has ended; empty while it runs."""
KINDS: dict[str, Work] = {"upload": "copy", "download": "copy", "run": "function"}


def work_of(message: Any) -> Work:
    """Return which kind of work a message is."""
    return KINDS.get(message.library, "kernel")


class Block(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of device memory.

    Attributes:
        ids: the numbers of the buffers that have it; several share it as views. One below 0 stands
            for a library's workspace, which is no buffer.
        address: where it begins, in bytes of the device's address space.
        nbytes: how many bytes it has.
        owner: the message that made it, as "Gemm #12", or "SVD #12.u" where it has several results;
            of a workspace "scratch of blas".
        dtype, shape: of the first of them.
        kept_by: who holds its handle, as far as is known: names of the notebook.
        memory: of which kind it is, as "pool", "managed", "growing", "shared" or "workspace"; empty
            where that is not known.
    """

    ids: tuple[int, ...]
    address: int
    nbytes: int
    owner: str
    dtype: str
    shape: tuple[int, ...]
    kept_by: tuple[str, ...] = ()
    memory: str = ""


class KeptObject(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An object that `%%gpu` cells have left on a device, other than a buffer.

    Attributes:
        name: under which the cells know it.
        space: the namespace that has it.
        type: its type, as text.
        nbytes: of the memory of the device that it was seen to hold, buffers included.
        generation: of its context.
        kept_by: names of the notebook, and the cells' own.
    """

    name: str
    space: str
    type: str
    nbytes: int
    generation: int
    kept_by: tuple[str, ...] = ()


class Slice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message's work on a stream of a device.

    Attributes:
        seq: the request's number; of what was not traced, how many messages it stands for.
        name: of the message, as "Gemm"; of a launch the kernel's, as "saxpy".
        stream: on which it ran, as "blas".
        kind: a library's kernel, a copy, a function of the user's, or what was not traced.
        start, end: by the device's clock, in wall seconds; `end` is None while it runs.
        lost: whether it did not come to its end: its context was lost at `end`.
        place: of a part of a message to several devices: that one's number, the rank and the size.
        queued: when the context took the message up, wall seconds; None where that is not known.
    """

    seq: int
    name: str
    stream: str
    kind: Work
    start: float
    end: float | None
    lost: bool = False
    place: tuple[int, int, int] | None = None
    queued: float | None = None


class CellRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One run of a notebook's cell.

    Attributes:
        number: as it stands beside the cell.
        line: the first of its text that is not empty.
        start, end: wall seconds; `end` is None while it runs.
        ended: in which way.
    """

    number: int
    line: str
    start: float
    end: float | None
    ended: Ended = ""


class HostWait(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A time in which the notebook's thread waited for an answer; `end` is None while it does."""

    start: float
    end: float | None


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One measured value; None says that there is none, and `why`.

    Attributes:
        name: what is measured, as "memory".
        value: in `unit`.
        unit: as "B", "%", "W", "°C", "MHz"; empty for a word or a count.
        limit: the most it can be, None where that is not known.
        why: the reason for a missing value, as "MIG"; or what a value means.
    """

    name: str
    value: float | None
    unit: str = ""
    limit: float | None = None
    why: str = ""


class Underway(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A collective operation that is not done.

    Attributes:
        group, call, algorithm, dtype, nbytes: as `CollectiveEnded` has them.
        ranks: the names of the devices that take part.
        arrived_s: by rank how long after the first one it began, -1 where it has not.
        began: when the first of them began, wall seconds; 0 where none has.
    """

    group: int
    call: str
    algorithm: str
    dtype: str
    nbytes: int
    ranks: tuple[str, ...]
    arrived_s: tuple[float, ...]
    began: float


class WorldLook(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A world at a moment.

    Attributes:
        name: what it is called.
        state: "forming", "whole", "given up" or "closed".
        epoch: how many communicators there were.
        devices: the names of its ranks, in their order.
        flights: what is under way, the oldest first.
        unlisted: how many more are.
        nbytes: of all that is under way.
        done, failed: how many ended well, and how many did not; for who has not seen them all.
        link_gb_s: of the slowest copy from a rank to the next one, as `lab.topology` has measured
            it; 0 where one of them was not, or a device has another context since.
    """

    name: str
    state: str
    epoch: int
    devices: tuple[str, ...]
    flights: tuple[Underway, ...] = ()
    unlisted: int = 0
    nbytes: int = 0
    done: int = 0
    failed: int = 0
    link_gb_s: float = 0.0


class PeerLook(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known from one device to another one.

    Attributes:
        link: how the one reaches the other's memory, as `18 NVLink`.
        reachable: whether it does.
        gb_per_s: of the fastest copy that was measured, in 10**9 bytes a second; 0 before one was.
        nbytes: how large the measured copies were.
        way: how they went.
        stale: whether one of the two has another context since.
    """

    source: str
    target: str
    link: str
    reachable: bool
    gb_per_s: float = 0.0
    nbytes: int = 0
    way: str = ""
    stale: bool = False


class TreeSampled(Event, frozen=True):
    """Every actor of a system, as it was."""

    root: Node


class MemorySampled(Event, frozen=True):
    """The memory of a device: its blocks by address; `unlisted` are too many to be listed.

    A new block has `free_bytes` at most, for what is free need not be in one piece; None where the
    device cannot tell. `stale` are buffers that were lost with an earlier generation while somebody
    holds their handles: each with who does. `objects` are what `%%gpu` cells have left, the largest
    first; what they hold may be in blocks, too.
    """

    device: str
    generation: int
    used_bytes: int
    total_bytes: int | None
    blocks: tuple[Block, ...]
    unlisted: int = 0
    free_bytes: int | None = None
    stale: tuple[tuple[int, tuple[str, ...]], ...] = ()
    objects: tuple[KeptObject, ...] = ()


class LevelsSampled(Event, frozen=True):
    """How much of a device's memory was used, in bytes, each from a wall second on: what is new.

    A tree tells the newest alone, and who reads a recording passes trees over.
    """

    device: str
    levels: tuple[tuple[float, int], ...]


class WorkTraced(Event, frozen=True):
    """What a device has finished since the last sample, and what it runs now.

    `dropped` were more than could be kept. `cells` tell which notebook cells have sent these: each
    with the number of its first request, ascending; None stands for a program.
    """

    device: str
    generation: int
    done: tuple[Slice, ...]
    running: tuple[Slice, ...]
    dropped: int = 0
    cells: tuple[tuple[int, int | None], ...] = ()


class NotebookSampled(Event, frozen=True):
    """What is new of the notebook itself: the cells that began or ended, and its waits.

    One that was told while it ran is told again, by the same begin, when it has ended.
    """

    cells: tuple[CellRun, ...] = ()
    waits: tuple[HostWait, ...] = ()


class HealthSampled(Event, frozen=True):
    """The readings of one source: a card by its name, or "notebook" for the kernel's process."""

    source: str
    model: str
    readings: tuple[Reading, ...]


class WorldsSampled(Event, frozen=True):
    """The worlds of a system that are in use, and what is under way in each."""

    worlds: tuple[WorldLook, ...]


class PeersSampled(Event, frozen=True):
    """How the devices of a system reach each other, and what was measured of that.

    `links` are of each ordered pair; `islands` are the devices in groups of which each reaches the
    others. There are none of either while the links are not known yet.
    """

    devices: tuple[str, ...]
    islands: tuple[tuple[str, ...], ...] = ()
    links: tuple[PeerLook, ...] = ()

    @property
    def is_measured(self) -> bool:
        """Whether there is a figure of any pair."""
        return any(one.gb_per_s for one in self.links)


class ValuesSeen(Event, frozen=True):
    """What an array held when it was looked at.

    `look` counts those of this `name` on this device. Of the elements `nans` and `infs` are no
    finite numbers; of the others, or of their magnitudes where they are complex, there are `least`,
    `most`, `mean`, and in `counts` how many are in each of some bins of one width between the two:
    one bin where all are equal, and none where their distance is no finite number. The three are
    None where no element is finite.
    """

    is_frequent: ClassVar[bool] = True
    device: str
    name: str
    look: int
    dtype: str
    shape: tuple[int, ...]
    nans: int
    infs: int
    least: float | None
    most: float | None
    mean: float | None
    counts: tuple[int, ...]
    cell: int | None = None


class SystemEnded(Event, frozen=True):
    """The system was closed or is gone; it sends nothing more."""

    name: str
