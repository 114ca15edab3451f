"""The arena's books: which segments exist, which blocks live in them, and what may be reused.

It decides and remembers; it creates no memory, waits for nothing and calls nobody. Whoever
uses it holds the arena's lock, but for `find`.

It is apart from the arena because that one waits, and calls back. What is decided under a lock has
to be short, and can be compared with a model step by step (`tests/compute/arena`). Three things
make it more than a free list:

- Memory takes long to make (0.1 s for 64 MiB, which is touched), and the lock is not held for
  that. So room is promised first, and registered when it is there; between the two nobody else can
  be promised the same. Contexts hear of a segment before a block of it is handed out.
- A released block is not free. An upload may still read it (a hold), and a context that was lost
  may still write to it until its process is reaped (quarantine).
- Serials are never used again, so a release that comes late, from a finalizer or after `clear`,
  frees nothing of anybody else's.
"""

import itertools
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import msgspec
import numpy.typing as npt

from accel_lab.compute.arena.segment import Segment
from accel_lab.compute.machine.memfd_mapping import PAGE

ALIGNMENT = 256
"""As CUDA aligns what it allocates, and more than any element or cache line needs."""
LARGE_ROUNDING = 2 << 20
"""A huge page of x86-64. So blocks of nearly one size find each other's segments again."""
FIRST_BYTES = 4 << 20
"""The first shared segment: 64 MiB take 0.1 s to be there, and many systems fetch only numbers."""


class ArenaStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The arena at one moment; sizes in bytes.

    Attributes:
        limit: what its segments may take together.
        reserved: what they take now, pre-touched.
        in_use: what live blocks take of it, padding and quarantine included.
        peak_in_use: the most that it ever was.
        blocks: how many live blocks there are.
        segments: how many segments.
        held: blocks that an upload is reading in place.
        quarantined: released blocks that wait until a context process is reaped.
        waits: allocations so far that had to wait for room.
    """

    limit: int
    reserved: int
    in_use: int
    peak_in_use: int
    blocks: int
    segments: int
    held: int
    quarantined: int
    waits: int


class Place(NamedTuple):
    """Where a new block lies, and the serial by which it is given back."""

    serial: int
    segment: Segment
    offset: int


class Ledger:
    """Segments, live blocks, holds and quarantine within `limit` bytes; not thread-safe."""

    def __init__(self, limit: int, segment_bytes: int) -> None:
        self.limit = limit // PAGE * PAGE
        self.segment_bytes = min(segment_bytes // PAGE * PAGE, self.limit)
        self.segments: dict[int, Segment] = {}
        self.usable: dict[int, Segment] = {}
        self._addresses: tuple[tuple[int, ...], tuple[Segment, ...]] = ((), ())
        self._live: dict[int, _Live] = {}
        self._quarantine: dict[Hashable, list[int]] = {}
        # One small token a lost context, for the life of the arena: a release may come late.
        self._reaped: set[Hashable] = set()
        self._serials = itertools.count(1)
        self._aside = self._promised = self._in_use = self._peak_in_use = 0

    def shares(self, nbytes: int) -> bool:
        """Tell whether a block of this size shares a segment with others."""
        return nbytes <= self.segment_bytes // 2

    def take(self, nbytes: int) -> Place | None:
        """Carve a block from the segments that exist: first fit, or the best fit if large."""
        size = _round_up(max(nbytes, 1), ALIGNMENT)
        serial = next(self._serials)
        for segment in self._candidates(nbytes):
            offset = segment.carve(serial, size)
            if offset is not None:
                place = Place(serial, segment, offset)
                self._enter(place, size)
                return place
        return None

    def _enter(self, place: Place, size: int) -> None:
        self._live[place.serial] = _Live(place.segment, place.offset, size)
        self._in_use += size
        self._peak_in_use = max(self._peak_in_use, self._in_use)

    # What a finalizer may call in the middle of anything else here, but for `adopt`.

    def set_aside(self, nbytes: int) -> int:
        """Set room aside for a segment of one block, to be adopted or given up later.

        Returns the segment's size, 0 if there is no room; nothing is dropped for it.
        """
        size = _round_up(max(nbytes, 1), PAGE)
        if size > self.limit - self._reserved:
            return 0
        self._aside += size
        return size

    def take_whole(self, segment: Segment) -> Place:
        """Carve one block from a segment that is in no books yet."""
        serial = next(self._serials)
        segment.carve(serial, segment.size)
        return Place(serial, segment, 0)

    def end_aside(self, size: int) -> None:
        """Give room up that was set aside."""
        self._aside -= size

    def adopt(self, place: Place) -> None:
        """Enter a segment that was made aside, and its block."""
        self.end_aside(place.segment.size)
        self.segments[place.segment.id] = place.segment
        self._enter(place, place.segment.size)
        self.publish(place.segment)

    def promise(self, nbytes: int) -> tuple[int, list[Segment]]:
        """Set room aside for a new segment that holds a block of `nbytes`.

        Returns the segment's size, 0 if live blocks leave too little room, and the idle
        segments that are forgotten for it. One promise at a time: `register` or `revoke` ends it.
        """
        least = _round_up(max(nbytes, 1), PAGE)
        wanted = self._wanted(nbytes)
        room = self.limit - self._reserved
        idle = sorted(self.idle, key=lambda segment: segment.size)
        if room + sum(segment.size for segment in idle) < least:
            return 0, []
        dropped: list[Segment] = []
        while room < least:
            enough = (segment for segment in idle if room + segment.size >= least)
            victim = next(enough, idle[-1])
            idle.remove(victim)
            dropped.append(victim)
            room += victim.size
        self.forget(dropped)
        self._promised = min(wanted, room)
        return self._promised, dropped

    def _wanted(self, nbytes: int) -> int:
        """Return the size of a segment to make: one that few small blocks need is soon there."""
        if not self.shares(nbytes):
            return _round_up(nbytes, LARGE_ROUNDING)
        shared = any(segment.is_shared for segment in self.segments.values())
        first = min(FIRST_BYTES, self.segment_bytes)
        return self.segment_bytes if shared or nbytes > first // 2 else first

    def revoke(self) -> None:
        """Give the promised room back."""
        self._promised = 0

    def register(self, segment: Segment) -> None:
        """List the promised segment for new contexts; no block of it is handed out yet."""
        self._promised = 0
        self.segments[segment.id] = segment

    def publish(self, segment: Segment) -> None:
        """Let blocks be carved from a registered segment."""
        self.usable[segment.id] = segment
        self._index()

    def forget(self, segments: Iterable[Segment]) -> None:
        """Strike segments off; unknown ones are fine."""
        for segment in segments:
            self.segments.pop(segment.id, None)
            self.usable.pop(segment.id, None)
        self._index()

    @property
    def idle(self) -> list[Segment]:
        """The usable segments without a live block."""
        return [segment for segment in self.usable.values() if segment.free.is_whole]

    def find(self, array: npt.NDArray[Any]) -> tuple[Segment, int] | None:
        """Return the segment and offset of a contiguous, native array, in O(log segments).

        The only method that needs no lock: it reads one immutable tuple.
        """
        addresses, segments = self._addresses
        address = array.__array_interface__["data"][0]
        index = bisect_right(addresses, address) - 1
        if index < 0:
            return None
        segment = segments[index]
        offset = address - segment.address
        if offset + array.nbytes > segment.size:
            return None
        if not (array.flags.c_contiguous and array.dtype.isnative):
            return None
        return segment, offset

    def hold(self, array: npt.NDArray[Any]) -> int | None:
        """Keep the block around the array; return its serial, None if there is no such block."""
        found = self.find(array)
        serial = None if found is None else found[0].serial_at(found[1], array.nbytes)
        if serial is not None:
            self._live[serial].holds += 1
        return serial

    def end_hold(self, serial: int) -> None:
        """Undo one `hold`; unknown after `clear`, which is fine."""
        if serial in self._live:
            self._live[serial].holds -= 1
            self._settle(serial)

    def release(self, serial: int, after: Hashable | None) -> None:
        """Give a block up; unknown after `clear`, which is fine."""
        live = self._live.get(serial)
        if live is not None:
            live.is_released = True
            live.after = after
            self._settle(serial)

    def reaped(self, token: Hashable) -> None:
        """Free what waited for this token, now and later."""
        self._reaped.add(token)
        for serial in self._quarantine.pop(token, ()):
            self._settle(serial)

    def clear(self) -> None:
        """Forget every published segment and every block."""
        self.forget(list(self.usable.values()))
        self._live.clear()
        self._quarantine.clear()
        self._in_use = 0

    def statistics(self, waits: int) -> ArenaStatistics:
        """Return the numbers of this moment."""
        return ArenaStatistics(
            limit=self.limit,
            reserved=self._reserved,
            in_use=self._in_use,
            peak_in_use=self._peak_in_use,
            blocks=len(self._live),
            segments=len(self.segments),
            held=sum(live.holds > 0 for live in self._live.values()),
            quarantined=sum(map(len, self._quarantine.values())),
            waits=waits,
        )

    @property
    def _reserved(self) -> int:
        return (
            self._aside + self._promised + sum(segment.size for segment in self.segments.values())
        )

    def _candidates(self, nbytes: int) -> list[Segment]:
        if self.shares(nbytes):
            return [segment for segment in self.usable.values() if segment.is_shared]
        # A segment of more than twice the size would waste more than it saves.
        most = 2 * max(nbytes, LARGE_ROUNDING)
        fitting = [
            segment
            for segment in self.idle
            if not segment.is_shared and nbytes <= segment.size <= most
        ]
        return sorted(fitting, key=lambda segment: segment.size)

    def _settle(self, serial: int) -> None:
        """Free a released block unless somebody reads it or may still write it."""
        live = self._live[serial]
        if not live.is_released or live.holds:
            return
        if live.after is not None and live.after not in self._reaped:
            self._quarantine.setdefault(live.after, []).append(serial)
            return
        del self._live[serial]
        live.segment.uncarve(live.offset)
        self._in_use -= live.size

    def _index(self) -> None:
        ordered = tuple(sorted(self.usable.values(), key=lambda segment: segment.address))
        self._addresses = (tuple(segment.address for segment in ordered), ordered)


class _Live:
    """A block that is not free."""

    __slots__ = ("after", "holds", "is_released", "offset", "segment", "size")

    def __init__(self, segment: Segment, offset: int, size: int) -> None:
        self.segment = segment
        self.offset = offset
        self.size = size
        self.holds = 0
        self.is_released = False
        self.after: Hashable | None = None


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
