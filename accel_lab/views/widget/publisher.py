"""One thread a process that lets every live view send its newest state.

Jupyter drops messages when a kernel sends too many, and widget traits are not safe in two threads:
so all views share one thread, which alone touches their traits, and one budget of messages.
"""

import atexit
import os
import queue
import sys
import threading
import time
import traceback
import warnings
import weakref
from typing import Protocol

DEFAULT_HZ = 10.0
MAX_HZ = 30.0
IDLE_HZ = 2.0
IDLE_AFTER_S = 1.0  # without a change
BUDGET_HZ = 50.0  # samples of all views together
BEAT_S = 1.0  # how often a view that does not change says that it is alive


class Publishable(Protocol):
    """What the publisher asks of a view; it calls both in its own thread."""

    @property
    def ended(self) -> bool:
        """Whether the view has sent its last state."""

    def publish(self, at: float) -> bool:
        """Sample, send if there is news (`at` is wall seconds), and say whether it changed."""


def interval_s(rate_hz: float, idle_s: float, views: int) -> float:
    """Return the seconds from one sample of a view to the next.

    Parameters:
        rate_hz: what the view asks for while its state changes.
        idle_s: how long it has not changed.
        views: how many views are alive.
    """
    rate = min(rate_hz, MAX_HZ if idle_s < IDLE_AFTER_S else IDLE_HZ)
    return max(1 / rate, views / BUDGET_HZ)


def silence_s(period_s: float) -> float:
    """Return how long a view may send nothing that is sampled so often.

    A sample within a beat of the last word that changes nothing is not sent.
    """
    return period_s if period_s > BEAT_S else BEAT_S + period_s


def check_rate(rate_hz: float) -> None:
    """Raise ValueError unless a rate is positive."""
    if not rate_hz > 0:
        raise ValueError(f"a view is sampled at a positive rate, not {rate_hz} Hz")


class Place:
    """A view's place in the publisher, which does not keep the view alive."""

    def __init__(self, publisher: "Publisher", view: Publishable, rate_hz: float) -> None:
        self._publisher = publisher
        self.view = weakref.ref(view, publisher._wake)  # noqa: SLF001  (the two are one noun)
        self.rate_hz = rate_hz
        self.sampled = self.changed = -float("inf")  # monotonic seconds
        self.nudged = True
        self.warned = False

    def nudge(self) -> None:
        """Ask for a sample as soon as the rate allows, idle or not.

        Never waits; any thread, a finalizer included.
        """
        if not self.nudged:
            self.nudged = True
            self._publisher._wake()  # noqa: SLF001

    @property
    def period_s(self) -> float:
        """The seconds from one sample to the next while nothing changes."""
        return interval_s(self.rate_hz, IDLE_AFTER_S, len(self._publisher._places))  # noqa: SLF001

    def due(self, now: float, views: int) -> float:
        """Return when the next sample is to be taken, monotonic seconds."""
        idle_s = 0.0 if self.nudged else now - self.changed
        return self.sampled + interval_s(self.rate_hz, idle_s, views)


class Publisher:
    """Samples views in one thread, which lives only while there is a view."""

    def __init__(self) -> None:
        self._start_over()

    def _start_over(self) -> None:
        """Begin with nothing; a forked child has the views but not the thread."""
        self._lock = threading.Lock()
        self._places: list[Place] = []
        self._thread: threading.Thread | None = None
        # The one queue whose `put` may interrupt itself: finalizers and events wake through it.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def add(self, view: Publishable, *, rate_hz: float = DEFAULT_HZ) -> Place:
        """Sample `view` until it ends or nobody holds it; any thread, does not block.

        Raises:
            RuntimeError: no thread can be had; the next view that is added tries again.
            ValueError: the rate is not positive.
        """
        check_rate(rate_hz)
        place = Place(self, view, rate_hz)
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="accel_lab views", daemon=True)
                thread.start()  # which waits for the lock
                self._thread = thread
            self._places.append(place)
        self._wake()
        return place

    @property
    def cpu_s(self) -> float:
        """What its thread has used of a core since it began, in seconds; 0 while there is none."""
        thread = self._thread
        if thread is None or thread.ident is None or not thread.is_alive():
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))

    def close(self, timeout_s: float = 1.0) -> None:
        """Let every view go and wait for the thread to end."""
        with self._lock:
            self._places.clear()
            thread = self._thread
        self._wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _wake(self, _: object = None) -> None:
        self._wakes.put(None)

    def _run(self) -> None:
        while (wait_s := self._publish_due()) is not None:
            try:
                self._wakes.get(timeout=wait_s)
            except queue.Empty:
                continue
            while not self._wakes.empty():
                self._wakes.get()

    def _publish_due(self) -> float | None:
        """Sample what is due; return the seconds to the next, or None when no view is left."""
        with self._lock:
            places = list(self._places)
        now = time.monotonic()
        gone = [
            place
            for place in places
            if place.due(now, len(places)) <= now and not self._publish(place)
        ]
        with self._lock:
            self._places = [
                place for place in self._places if place not in gone and place.view() is not None
            ]
            if not self._places:
                self._thread = None
                return None
            now = time.monotonic()
            return max(0.0, min(p.due(now, len(self._places)) for p in self._places) - now)

    def _publish(self, place: Place) -> bool:
        """Sample one view; return whether to go on with it."""
        view = place.view()
        if view is None:
            return False
        place.nudged = False  # before the sample: what happens during it asks for another
        place.sampled = time.monotonic()
        try:
            if view.publish(time.time()):
                place.changed = place.sampled
        except Exception as error:  # noqa: BLE001  (one view's mistake is not the others')
            self._warn(place, view, error)
            return True
        return not view.ended

    def _warn(self, place: Place, view: Publishable, error: Exception) -> None:
        """Say once a view that it cannot be drawn; never raises, even if warnings are errors."""
        if place.warned:
            return
        place.warned = True
        what = f"{type(view).__name__} could not be updated and will be tried again"
        try:
            warnings.warn(f"{what}: {error!r}", RuntimeWarning, stacklevel=2)
        except RuntimeWarning:
            sys.stderr.write(f"{what}\n")
            traceback.print_exception(error)


PUBLISHER = Publisher()
os.register_at_fork(after_in_child=PUBLISHER._start_over)  # noqa: SLF001
atexit.register(PUBLISHER.close)
