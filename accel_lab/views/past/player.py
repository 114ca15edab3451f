"""A system's past, played: the scene as it was after so many steps, forward and back."""

import math
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied
from accel_lab.views.scene.observer import Lab, Want
from accel_lab.views.scene.scene import Scene

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
QUIET_S = 2.0
"""For so long a player waits where nothing happened; longer stretches are cut to that."""
SNAPSHOTS = 64
STRIDE = 500
"""The fewest steps from one snapshot to the next."""


class Line(NamedTuple):
    """One step in words.

    Attributes:
        at: when it was, in wall seconds.
        device: which device it is about, empty for the whole system.
        generation: of its context, 0 where that has no meaning.
        what: the step.
        outcome: what became of it.
        mark: "fault", "turn" for a new generation, or empty.
        seq: the request that it is; 0 for what is none.
        cell: the notebook's cell that sent it; 0 where none did.
        detail: what it is made of, as (what, text).
    """

    at: float
    device: str
    generation: int
    what: str
    outcome: str
    mark: str
    seq: int = 0
    cell: int = 0
    detail: tuple[tuple[str, str], ...] = ()


class Fold(Protocol):
    """The scene after some steps."""

    scene: Scene

    def advance(self, steps: range) -> None:
        """Take the next steps; they follow those that it has."""

    def copy(self) -> "Fold":
        """Return one that goes on by itself."""


class Past(Protocol):
    """What can be looked back at: a recording, or a journal.

    What another thread reads is appended, and `times` grows last.
    """

    @property
    def name(self) -> str:
        """What it is of."""

    @property
    def kind(self) -> str:
        """As "recording"."""

    @property
    def times(self) -> Sequence[float]:
        """When each step was, in wall seconds; never descending."""

    @property
    def faults(self) -> Sequence[int]:
        """Which steps are failures, ascending."""

    @property
    def turns(self) -> Sequence[int]:
        """Which steps begin a generation, ascending."""

    @property
    def dropped(self) -> int:
        """How many steps are known to be missing."""

    @property
    def damage(self) -> str:
        """What ends it early; empty when it is whole."""

    def read(self) -> None:
        """Take in what was written since; may block for a disk or a server."""

    def fold(self) -> Fold:
        """Return the scene before the first step."""

    def lines(self, steps: range) -> Sequence[Line]:
        """Return steps in words."""


class Player(Uncopied):
    """A position in a past, from 0 to the number of its steps, and the scene there.

    It is the source of the views that draw that scene. Positions move in whichever thread asks;
    while it plays they move with each look. Whoever looks holds `lock`.

    Parameters:
        lock: shared with another source that the same views may draw.
        clock: monotonic seconds.
    """

    lab: Lab | None = None
    ended = False  # one can always go back

    def __init__(
        self,
        past: Past,
        *,
        lock: "threading.RLock | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.past = past
        self.lock = lock or threading.RLock()
        self._speed = 1.0
        self._clock = clock
        self._playing: tuple[float, float] | None = None  # the clock's second, and that shown then
        self._preparing = threading.Lock()
        self._watchers: list[Callable[[], None]] = []
        self.begin()

    def begin(self) -> None:
        """Go to the end, and know nothing of what was folded."""
        with self.lock, self._preparing:  # in the order of who looks
            self._position = len(self.past.times)
            self._shown = self.past.fold()
            self._shown_at = 0
            self._snapshots: list[Fold] = [self.past.fold()]
            self._snapshots_at = [0]

    @property
    def position(self) -> int:
        """How many steps the scene has."""
        with self.lock:
            self._go_on()
            return self._position

    @property
    def at(self) -> float:
        """The moment that is shown, in wall seconds; 0 for an empty past."""
        with self.lock:
            self._go_on()
            if self._playing is not None:
                return self._moment(self._clock())
            return self._time_of(self._position)

    @property
    def playing(self) -> bool:
        """Whether it goes on by itself."""
        with self.lock:
            self._go_on()
            return self._playing is not None

    @property
    def speed(self) -> float:
        """How many times as fast as it was it goes on; it is set while it does not play.

        Raises:
            InvalidArgument: the speed is not a finite one above 0.
        """
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._speed = _positive(speed)

    def seek(self, position: int) -> None:
        """Go to a position, the nearest there is; blocks while what leads there is folded."""
        position = min(max(0, position), len(self.past.times))
        self._prepare(position)
        with self.lock:
            self._position = position
            if self._playing is not None:
                self._playing = self._clock(), self._time_of(position)
        self._tell()

    def seek_time(self, at: float) -> None:
        """Go to the last step of a moment; blocks as `seek` does."""
        self.seek(bisect_right(self.past.times, at))

    def step(self, n: int = 1) -> None:
        """Pause, and go `n` steps on, or back where it is negative."""
        self.pause()
        self.seek(self.position + n)

    def next_fault(self) -> bool:
        """Pause and go to the next failure; False, and no move, when there is none."""
        self.pause()
        faults = self.past.faults
        index = bisect_left(faults, self.position)
        if index == len(faults):
            return False
        self.seek(faults[index] + 1)
        return True

    def play(self, speed: float | None = None) -> None:
        """Go on by itself, `speed` times as fast as it was; from the start when it is at the end.

        Raises:
            InvalidArgument: the speed is not a finite one above 0.
        """
        speed = self._speed if speed is None else _positive(speed)
        if self.position == len(self.past.times):
            self.seek(0)
        self._prepare(len(self.past.times))
        with self.lock:
            moment = self.at if self._playing is not None else self._time_of(self._position)
            self._speed = speed
            self._playing = self._clock(), moment
        self._tell()

    def pause(self) -> None:
        """Stay where it is."""
        with self.lock:
            self._go_on()
            self._playing = None
        self._tell()

    def look(self) -> Scene:
        """Return the scene at the position; any thread that holds `lock`."""
        self._go_on()
        if self._position != self._shown_at:
            self._prepare(self._position)
            nearest = bisect_right(self._snapshots_at, self._position) - 1
            start = self._snapshots_at[nearest]
            if not start <= self._shown_at <= self._position:
                self._shown, self._shown_at = self._snapshots[nearest].copy(), start
            # What it has of these steps nobody knows, should it be stopped among them.
            begin, self._shown_at = self._shown_at, -1
            self._shown.advance(range(begin, self._position))
            self._shown_at = self._position
        return self._shown.scene

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Do nothing: what was not sampled then cannot be sampled now."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the position moved; returns what ends that."""
        self._watchers.append(callback)

        def end() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return end

    def _tell(self) -> None:
        for callback in list(self._watchers):
            callback()

    def _time_of(self, position: int) -> float:
        times = self.past.times
        return times[max(0, position - 1)] if len(times) else 0.0

    def _moment(self, now: float) -> float:
        assert self._playing is not None
        since, shown = self._playing
        return shown + (now - since) * self._speed

    def _go_on(self) -> None:
        """Move to where playing has got; with `lock` held."""
        if self._playing is None:
            return
        now, times = self._clock(), self.past.times
        moment, before = self._moment(now), self._position
        self._position = max(before, bisect_right(times, moment))
        if self._position == len(times):
            self._playing = None
        elif times[self._position] - moment > QUIET_S * self._speed:
            self._playing = now, times[self._position] - QUIET_S * self._speed
        if self._position != before:
            self._tell()

    def _prepare(self, position: int) -> None:
        """Have snapshots up to a position; views are not kept waiting meanwhile."""
        with self._preparing:
            while True:
                stride = max(STRIDE, len(self.past.times) // SNAPSHOTS)
                last = self._snapshots_at[-1]
                if last + stride > position:
                    return
                beyond = self._snapshots[-1].copy()
                beyond.advance(range(last, last + stride))
                self._snapshots.append(beyond)
                self._snapshots_at.append(last + stride)


def _positive(speed: float) -> float:
    if not 0 < speed < math.inf:
        raise InvalidArgument(f"a past is played at a finite speed above 0, not {speed}")
    return speed
