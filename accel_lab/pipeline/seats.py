"""The items that one stage holds, and in what order they come and go; it calls nothing."""

import time
from collections.abc import Iterator
from typing import Any, Literal

from accel_lab.pipeline.progress import StageProgress
from accel_lab.pipeline.stage import Stage

Standing = Literal["waiting", "running", "stopping", "done"]


class Item:
    """One item on its way, in the seat of one stage.

    Attributes:
        number: its place in the source, from 0.
        origin: what the source gave.
        value: what the stage gets; what it returned, when it is done.
        at: the stage that runs for it: its own, or one before, when it is computed again.
        again: whether `value` is lost, and has to be computed from `origin`.
        faults: how often its stage has met a fault with it.
    """

    __slots__ = ("again", "at", "faults", "number", "origin", "standing", "value")

    def __init__(self, number: int, origin: Any) -> None:
        self.number = number
        self.origin = self.value = origin
        self.at = 0
        self.standing: Standing = "done"
        self.again = False
        self.faults = 0


class Seats:
    """The seats of a stage: an item keeps its own from when it comes until it is passed on.

    Attributes:
        paused: how many restarts it waits for before it runs anything.
    """

    def __init__(self, stage: Stage, position: int) -> None:
        self.stage = stage
        self.position = position
        self.paused = 0
        self.received = self.passed = self.reruns = self.skipped = 0
        self._items: dict[int, Item] = {}
        self._input_s = self._output_s = 0.0
        self._seen = time.monotonic()
        self._starved = self._blocked = False

    @property
    def has_room(self) -> bool:
        """Whether one more item may come."""
        return len(self._items) < self.stage.capacity

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self._items

    def seat(self, item: Item) -> None:
        """Take an item in, behind those that are there."""
        self._items[item.number] = item
        self.received += 1

    def leave(self, item: Item) -> None:
        """Let an item go."""
        del self._items[item.number]

    def running(self) -> Iterator[Item]:
        """Yield what the stage is at."""
        return (one for one in self._items.values() if one.standing == "running")

    def startable(self) -> Item | None:
        """Return the next item to be run, if one may be now."""
        if self.paused:
            return None
        busy, first = 0, None
        for one in self._items.values():
            busy += one.standing in ("running", "stopping")
            if first is None and one.standing == "waiting":
                first = one
        return first if busy < self.stage.parallelism else None

    @property
    def has_free_hand(self) -> bool:
        """Whether it could run one item more, and has none."""
        standings = [one.standing for one in self._items.values()]
        busy = standings.count("running") + standings.count("stopping")
        return not self.paused and busy < self.stage.parallelism and "waiting" not in standings

    def ready(self) -> Item | None:
        """Return the next item that may leave: the oldest one, where order is kept."""
        for one in self._items.values():
            if one.standing == "done":
                return one
            if self.stage.ordered:
                return None
        return None

    def clear(self) -> list[Item]:
        """Let everything go, and return it."""
        items, self._items = list(self._items.values()), {}
        return items

    def account(self, *, starved: bool, blocked: bool) -> None:
        """Count the time since the last call as how it was then; from now on it is so."""
        now = time.monotonic()
        self._input_s += (now - self._seen) * self._starved
        self._output_s += (now - self._seen) * self._blocked
        self._seen, self._starved, self._blocked = now, starved, blocked

    def progress(self) -> StageProgress:
        """Return how far the stage is."""
        standings = [one.standing for one in list(self._items.values())]
        since = time.monotonic() - self._seen
        return StageProgress(
            self.stage.name,
            tuple(one.name for one in self.stage.devices),
            self.stage.capacity,
            self.received,
            standings.count("waiting"),
            standings.count("running") + standings.count("stopping"),
            standings.count("done"),
            self.passed,
            self.reruns,
            self.skipped,
            self._input_s + since * self._starved,
            self._output_s + since * self._blocked,
        )
