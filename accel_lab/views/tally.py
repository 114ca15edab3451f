"""What is counted of a scene's work, so that a look costs what is new, not what was ever seen."""

import weakref
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from accel_lab.compute.samples import Slice
from accel_lab.views.scene import Scene

PACKED = 4096
"""How many of the newest slices are packed; 128 KiB."""


@dataclass(slots=True)
class Row:
    """A stream of a device; of its finished work the count, and in seconds the sum and the most.

    Work that overlaps is busy once; `until` is how far it has been summed. What ended with its
    context is busy time, but not finished: `lost` counts it, `last_lost` is the newest.
    """

    device: str
    stream: str
    count: int = 0
    busy: float = 0.0
    longest: float = 0.0
    until: float = 0.0
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
        # Columns as rows. What is packed lies up to `_end`; without room it moves to the front.
        self._columns = np.empty((4, 2 * PACKED), "<f8")
        self._first = self._end = 0
        self._packed: bytes | None = None

    def follow(self, scene: Scene) -> None:
        """Take what is new in the scene."""
        seen = self.seen
        new = list(takewhile(lambda item: item[0] >= seen, reversed(scene.slices)))
        if new:
            new.reverse()
            if new[0][0] != seen:
                self._first = self._end  # what is packed has no gap
            self._keep([self._add(device, one) for _, device, one in new])
            self.seen = new[-1][0] + 1
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

    def _add(self, device: str, one: Slice) -> tuple[float, float, int, int]:
        start = one.start
        end = start if one.end is None else one.end
        work, row = self._find(device, one)
        if one.lost:
            row.lost += 1
            row.last_lost = one
        else:
            row.count += 1
            row.longest = max(row.longest, end - start)
        row.busy += max(0.0, end - max(start, row.until))
        row.until = max(row.until, end)
        span = self.span
        if span is None:
            self.span = start, end
        elif start < span[0] or end > span[1]:
            self.span = min(span[0], start), max(span[1], end)
        return start, end, one.seq, work

    def _keep(self, new: list[tuple[float, float, int, int]]) -> None:
        new = new[-PACKED:]
        if self._end + len(new) > self._columns.shape[1]:
            kept = self._columns[:, self._first : self._end].copy()
            self._first, self._end = 0, kept.shape[1]
            self._columns[:, : self._end] = kept
        self._columns[:, self._end : self._end + len(new)] = np.array(new, "<f8").T
        self._end += len(new)
        self._first = max(self._first, self._end - PACKED)

    def pack(self) -> bytes:
        """Return the newest slices as little-endian Float64.

        First the number of the oldest of them and how many they are; then four columns: start and
        end in wall seconds, the request's number, and the number of the work. The slices' own
        numbers are consecutive.
        """
        if self._packed is None:
            count = self._end - self._first
            head = np.array([self.seen - count, count], "<f8")
            self._packed = head.tobytes() + self._columns[:, self._first : self._end].tobytes()
        return self._packed


_tallies: weakref.WeakKeyDictionary[Scene, Tally] = weakref.WeakKeyDictionary()


def tally(scene: Scene) -> Tally:
    """Return what is counted of a scene up to now; for whoever may read the scene."""
    found = _tallies.get(scene)
    if found is None or found.seen > scene.traced:
        found = _tallies[scene] = Tally()
    found.follow(scene)
    return found
