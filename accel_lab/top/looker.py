"""Follows the feeds of this user's processes, and says when all of them have spoken."""

import os
import time
from contextlib import suppress
from typing import Self

from accel_lab.top.snapshot import Snapshot, snapshot
from accel_lab.uncopied import Uncopied
from accel_lab.views.feed import folder as feed_folder
from accel_lab.views.feed.client import FeedSource, Watch
from accel_lab.views.tallies.device_metrics import devices_in

SPEAKS_WITHIN_S = 3.0
WORK_WITHIN_S = 2.0
PAUSE_S = 0.02


class Looker(Uncopied):
    """A watch over all systems, until it is closed.

    Parameters:
        since_s: for how long a fault counts that is over.
    """

    _instead = "make another"

    def __init__(self, since_s: float) -> None:
        self._since_s = since_s
        self._watch = Watch()
        self._met: dict[int, float] = {}  # the processes that offer a feed, and since when

    def snapshot(self) -> Snapshot:
        """Return what is known now; does not wait."""
        sources, now = self._watch.sources(), time.monotonic()
        offering = _offering()
        self._met = {pid: self._met.get(pid, now) for pid in offering}
        spoke = {source.speaker.pid for source in sources}
        mute = [
            pid
            for pid, met in self._met.items()
            if pid not in spoke and now - met >= SPEAKS_WITHIN_S
        ]
        return snapshot(sources, mute, self._since_s)

    def settled(self) -> Snapshot:
        """Return what is known once every process has told of its systems and their work.

        Waits 3 s at most for those that say nothing, and 2 s more for the work of the others.
        """
        until = time.monotonic() + SPEAKS_WITHIN_S
        found = self.snapshot()
        while time.monotonic() < until and not self._has_heard_of_all():
            time.sleep(PAUSE_S)
            found = self.snapshot()
        until = time.monotonic() + WORK_WITHIN_S
        while time.monotonic() < until and not all(map(_has_work, self._watch.sources())):
            time.sleep(PAUSE_S)
        time.sleep(PAUSE_S if found.systems or found.mute else 0.0)
        return self.snapshot()

    def _has_heard_of_all(self) -> bool:
        sources = self._watch.sources()
        spoke = {source.speaker.pid for source in sources}
        return spoke >= {*_offering()} and all(one.look().tree is not None for one in sources)

    def close(self) -> None:
        """Hang up."""
        self._watch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _has_work(source: FeedSource) -> bool:
    """Whether it was told what its devices do; those that have no context do nothing."""
    with source.lock:
        scene = source.look()
        busy = {node.name for node in devices_in(scene) if node.state == "running"}
    return source.ended or source.is_stale or busy <= scene.running.keys()


def _offering() -> set[int]:
    """Return the processes that offer a feed and live."""
    found: set[int] = set()
    for folder in feed_folder.folders():
        with suppress(OSError):  # it is not there, or not safe, or goes meanwhile
            entered = feed_folder.enter(folder)
            try:
                found.update(name.pid for name in feed_folder.names(entered) if name.lives)
            finally:
                os.close(entered)
    return found
