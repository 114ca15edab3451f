"""What the streams of a system did in the last second: messages a second, and busy time.

All of it comes from the newest slices, a few thousand at most, as columns: what it costs does not
grow with the number of messages. What was not traced one by one has no time, and then none is told.
"""

import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_lab.compute.events.samples import Slice
from accel_lab.views.scene.observer import Source
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.tally import Tally, tally

WINDOW_S = 1.0
EVERY_S = 0.25
"""How often it is told anew while a system runs."""
LATE_S = 0.2
"""What a device did is known so much later at most, so the window ends then."""

Stream = tuple[str, str]
"""A device and its stream; the device as a whole has the stream ""."""


class Load(NamedTuple):
    """Messages done a second, and the share of time at work; None where that is not known."""

    rate: float
    busy: float | None


class Loads:
    """The loads of one scene, told anew four times a second."""

    def __init__(self) -> None:
        self._at = -float("inf")
        self._found: Mapping[Stream, Load] = {}
        self._untraced: dict[str, tuple[int, float]] = {}

    def look(self, scene: Scene, now: float, late: float) -> Mapping[Stream, Load]:
        """Return what each stream did up to `late` seconds before `now`; those at rest are not in.

        Of a device of which messages were lost to the observer nothing is told.
        """
        if not 0 <= now - self._at < EVERY_S:
            self._at = now
            for device, count in scene.untraced.items():
                if self._untraced.get(device, (0, 0.0))[0] != count:
                    self._untraced[device] = count, now
            found = dict(_loads(scene, now - late))
            self._found = {key: load for key, load in found.items() if self._is_whole(key, now)}
        return self._found

    def busy(self, device: str) -> float | None:
        """Return for which share a device was at work at the last look; None if not known."""
        key = device, ""
        if not self._is_whole(key, self._at):
            return None
        load = self._found.get(key)
        return 0.0 if load is None else load.busy

    def _is_whole(self, key: Stream, now: float) -> bool:
        _, lost_at = self._untraced.get(key[0], (0, -float("inf")))
        return now - lost_at > WINDOW_S + LATE_S


_known: weakref.WeakKeyDictionary[Scene, Loads] = weakref.WeakKeyDictionary()


def loads(scene: Scene, source: Source) -> Mapping[Stream, Load]:
    """Return what the streams of a scene did in its last second; for whoever may read the scene."""
    return _looked(scene, source)[1]


def busy(scene: Scene, source: Source, device: str) -> float | None:
    """Return for which share of the last second a device was at work; None where not known."""
    return _looked(scene, source)[0].busy(device)


def _looked(scene: Scene, source: Source) -> tuple[Loads, Mapping[Stream, Load]]:
    is_live = source.lab is not None
    now = time.time() if is_live else scene.at
    known = _known.setdefault(scene, Loads())
    return known, known.look(scene, now, LATE_S if is_live else 0.0)


def _loads(scene: Scene, until: float) -> Iterator[tuple[Stream, Load]]:
    """Yield the load of each stream, and of each device, that was at work in the last second."""
    known = tally(scene)
    packed = np.frombuffer(known.pack())
    first, count = int(packed[0]), int(packed[1])
    columns = packed[2:].reshape(-1, count) if count else np.empty((4, 0))
    start, end, seq, work = columns[:4]
    since = until - WINDOW_S
    if first > 0 and count:
        since = max(since, float(end.min()))  # what ended before is not packed
    is_recent = (end > since) & (start < until)
    if since >= until or not (is_recent.any() or any(scene.running.values())):
        return
    start, end, seq, work = (one[is_recent] for one in (start, end, seq, work))
    spans = np.clip(np.array((start, end)), since, until)
    row, is_traced, messages = _of_works(known, work.astype(int), seq)
    messages[end > until] = 0
    for device in dict.fromkeys([*scene.running, *(one.device for one in known.rows)]):
        running = [one for one in scene.running.get(device, ()) if one.start < until]
        streams = [n for n, one in enumerate(known.rows) if one.device == device]
        parts = [(known.rows[n].stream, row == n) for n in streams]
        parts.append(("", np.isin(row, streams)))
        for stream, own in parts:
            ones = [one for one in running if stream in ("", one.stream)]
            if not (ones or own.any()):
                continue
            rate = float(messages[own].sum()) / (until - since)
            is_known = is_traced[own].all() and all(one.kind != "untraced" for one in ones)
            busy = _covered(spans[:, own], ones, since, until) if is_known else None
            yield (device, stream), Load(rate, busy)


def _of_works(
    known: Tally, work: NDArray[np.int_], seq: NDArray[np.float64]
) -> tuple[NDArray[np.int_], NDArray[np.bool_], NDArray[np.float64]]:
    """Return of each slice its row, whether it was traced, and how many messages it stands for."""
    keys = list(known.works)
    row = np.array([key[0] for key in keys], int)[work]
    is_traced = np.array([key[2] != "untraced" for key in keys], bool)[work]
    is_lost = np.array([key[3] for key in keys], bool)[work]
    return row, is_traced, np.where(is_lost, 0.0, np.where(is_traced, 1.0, seq))


def _covered(
    spans: NDArray[np.float64], running: Iterable[Slice], since: float, until: float
) -> float:
    """Return the share of the time in which something was at work; what overlaps counts once."""
    more = [(max(one.start, since), until) for one in running]
    starts, ends = np.concatenate((spans, np.array(more).reshape(-1, 2).T), axis=1)
    order = starts.argsort()
    starts, ends = starts[order], ends[order]
    reached = np.concatenate(([since], np.maximum.accumulate(ends)[:-1]))
    return float(np.maximum(0.0, ends - np.maximum(starts, reached)).sum()) / (until - since)
