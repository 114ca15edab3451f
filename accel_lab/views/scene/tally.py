"""What is counted of a scene's work, so that a look costs what is new, not what was ever seen."""

import weakref
from array import array
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

from msgspec.structs import astuple

from accel_lab.compute.events.samples import Slice
from accel_lab.views.scene.scene import Scene

PACKED = 4096
"""How many of the newest slices are packed; 128 KiB."""
PACKS = 4
"""How many columns are packed; when a slice was taken up is told apart."""
ROOM = 2 * PACKED
"""From so many values on a column is cut to those that are packed."""


Taken = tuple[float, float, int, int, float]
"""Of a slice: start, end, the request's number, the work's, and when it was taken up."""


@dataclass(slots=True)
class Row:
    """A stream of a device; of its finished work the count, and in seconds the sum and the most.

    Work that overlaps is busy once; `until` is how far it has been summed. What ended with its
    context is busy time, but not finished: `lost` counts it, `last_lost` is the newest. `passed`
    counts the messages of which nobody knows how long they took, for they were not traced.
    """

    device: str
    stream: str
    count: int = 0
    busy: float = 0.0
    longest: float = 0.0
    until: float = 0.0
    passed: int = 0
    lost: int = 0
    last_lost: Slice | None = None


class Tally:
    """The rows, the kinds of work and the newest slices of one scene.

    Attributes:
        rows: the streams, in the order in which they were first seen.
        works: the number of each (row, name, kind, lost) that occurs.
        span: from the first start to the last end of finished work, wall seconds.
        seen: how many slices were counted or passed over because the scene had forgotten them.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.works: dict[tuple[int, str, str, bool], int] = {}
        self.span: tuple[float, float] | None = None
        self.seen = 0
        self._places: dict[tuple[str, str], int] = {}
        self._known: dict[tuple[str, str, str, str, bool], tuple[int, Row]] = {}
        self._columns = tuple(array("d") for _ in range(5))
        self._count = 0  # how many of their last values are packed
        self._packed: bytes | None = None

    def follow(self, scene: Scene) -> None:
        """Take what is new in the scene."""
        if (new := min(scene.traced - self.seen, len(scene.slices))) > 0:
            slices = list(islice(reversed(scene.slices), new))
            slices.reverse()
            if slices[0][0] != self.seen:
                self._count = 0  # what is packed has no gap
            self._keep(self._added(slices)[-PACKED:])
            self.seen = scene.traced
            self._packed = None
        for device, running in scene.running.items():
            for one in running:
                self.work(device, one)

    def work(self, device: str, one: Slice) -> int:
        """Return the number of a slice's row, name and kind."""
        return self._find(device, one)[0]

    def _find(self, device: str, one: Slice) -> tuple[int, Row]:
        key = device, one.stream, one.name, one.kind, one.lost
        found = self._known.get(key)
        if found is None:
            row = self._places.setdefault((device, one.stream), len(self.rows))
            if row == len(self.rows):
                self.rows.append(Row(device, one.stream))
            work = self.works.setdefault((row, one.name, one.kind, one.lost), len(self.works))
            found = self._known[key] = work, self.rows[row]
        return found

    def _added(self, slices: list[tuple[int, str, Slice]]) -> list[Taken]:
        """Count slices, and return their columns as rows."""
        known = self._known
        rows: list[Taken] = []
        for _, device, one in slices:
            seq, name, stream, kind, start, end, lost, _, queued = astuple(one)
            if end is None:
                end = start
            work, row = known.get((device, stream, name, kind, lost)) or self._find(device, one)
            rows.append((start, end, seq, work, queued or 0.0))
            if kind == "untraced":
                row.passed += seq
                continue
            if lost:
                row.lost += 1
                row.last_lost = one
            else:
                row.count += 1
                row.longest = max(row.longest, end - start)
            row.busy += max(0.0, end - max(start, row.until))
            row.until = max(row.until, end)
        first, last = min(map(itemgetter(0), rows)), max(map(itemgetter(1), rows))
        before = self.span or (first, last)
        self.span = min(first, before[0]), max(last, before[1])
        return rows

    def _keep(self, new: list[Taken]) -> None:
        self._count = min(self._count + len(new), PACKED)
        for column, values in zip(self._columns, zip(*new, strict=True), strict=True):
            column.extend(values)
            if len(column) > ROOM:
                del column[: -self._count]

    def pack(self) -> bytes:
        """Return the newest slices as little-endian Float64.

        First the number of the oldest of them and how many they are; then four columns: start and
        end in wall seconds, the request's number, and the number of the work. The slices' own
        numbers are consecutive.
        """
        if self._packed is None:
            count = self._count
            head = array("d", (self.seen - count, count))
            columns = (
                memoryview(column)[len(column) - count :] for column in self._columns[:PACKS]
            )
            self._packed = b"".join((head, *columns))
        return self._packed

    def queued(self) -> "array[float]":
        """Return of each slice that is packed when its context took it up, 0 where not known."""
        column = self._columns[PACKS]
        return column[len(column) - self._count :]


_tallies: weakref.WeakKeyDictionary[Scene, Tally] = weakref.WeakKeyDictionary()


def tally(scene: Scene) -> Tally:
    """Return what is counted of a scene up to now; for whoever may read the scene."""
    found = _tallies.get(scene)
    if found is None or found.seen > scene.traced:
        found = _tallies[scene] = Tally()
    found.follow(scene)
    return found
