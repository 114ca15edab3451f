"""The system thread: calls, timers and descriptors, one after the other.

Everything that an actor does happens on its event loop, so an actor needs no locks. The thread
sleeps in epoll; whoever hands it work wakes it only if it sleeps. Over a `FakeClock` it can do
without a thread: `run_pending()` runs what is due, in the caller's thread, the same way each time.
"""

import contextlib
import heapq
import itertools
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from accel_lab.actor.clock import Clock, MonotonicClock
from accel_lab.actor.events import warn_of
from accel_lab.uncopied import Uncopied

# A hang-up is reported even for an empty interest set; edge-triggered it is reported once,
# so a paused descriptor whose peer is gone cannot keep the thread spinning.
PAUSED = select.EPOLLET
WORTH_A_READ = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
SHORT_S = 0.05
"""A sleep up to this is measured in microseconds; epoll counts whole milliseconds, rounded up."""
SELECTABLE = 1024
"""`select` takes descriptors below this."""


class Timer:
    """A call that is due at `deadline` (seconds of the event loop's clock)."""

    __slots__ = ("_call", "deadline")

    def __init__(self, deadline: float, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.deadline = deadline
        self._call: tuple[Callable[..., object], tuple[Any, ...]] | None = (fn, args)

    def cancel(self) -> None:
        """Take the call back, from any thread; no effect once it has run."""
        self._call = None

    @property
    def pending(self) -> bool:
        """Whether the call is still to come."""
        return self._call is not None


class _Watch:
    """Who follows one descriptor."""

    __slots__ = ("paused", "reader")

    def __init__(self, reader: Callable[[], object]) -> None:
        self.reader = reader
        self.paused = False

    @property
    def mask(self) -> int:
        return PAUSED if self.paused else select.EPOLLIN


class EventLoop(Uncopied):
    """One daemon thread that runs callbacks in order.

    Parameters:
        name: the thread's name.
        clock: what timers follow; the machine's monotonic clock when not given.
        on_error: called, on the event loop, with whatever escapes a callback; the default
            issues a RuntimeWarning. The event loop goes on either way.
    """

    def __init__(
        self,
        name: str,
        clock: Clock | None = None,
        on_error: Callable[[BaseException], object] | None = None,
    ) -> None:
        self.name = name
        self.clock: Clock = MonotonicClock() if clock is None else clock
        self.on_error: Callable[[BaseException], object] = on_error or _warn
        # A clock that a test advances tells us when; nobody may sleep on it.
        self._follows_clock = hasattr(self.clock, "subscribe")
        if self._follows_clock:
            self.clock.subscribe(self._nudge)  # type: ignore[attr-defined]
        self._ready: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._prune_at = 64
        self._watches: dict[int, _Watch] = {}
        self._epoll: select.epoll | None = None
        self._bell = -1
        self._sleeping = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._owner: int | None = None
        # Re-entrant: a finalizer may hand in work while this thread holds it.
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the thread and return.

        Raises:
            RuntimeError: it was started before; an event loop is not reused.
        """
        with self._lock:
            if self._thread is not None or self._stopped:
                msg = f"event loop {self.name} was started before; make a new one"
                raise RuntimeError(msg)
            self._open()
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()

    def stop(self, timeout_s: float | None = None) -> None:
        """Run what is queued now, drop timers and watches, end the thread and join it.

        Safe to repeat and from any thread; called on the event loop itself it does not join.

        Parameters:
            timeout_s: how long to wait for a call that runs; the thread ends after it.
        """
        with self._lock:
            already, self._stopped = self._stopped, True
            thread = self._thread
        if thread is None:
            if not already:
                self._drain()
            self._close()
            return
        self._nudge()
        if thread is not threading.current_thread():
            thread.join(timeout_s)

    @property
    def is_running(self) -> bool:
        """Whether the thread is there to run what is handed in."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop()` was called; what is handed in now will not run."""
        return self._stopped

    def is_current(self) -> bool:
        """Whether the calling thread is running this event loop's callbacks."""
        return self._owner == threading.get_ident()

    def call_soon(self, fn: Callable[..., object], *args: Any) -> bool:
        """Run `fn(*args)` on the event loop after what is queued; from any thread, never waits.

        Returns False once the event loop has been stopped: `fn` will most likely not run.
        """
        # Append first, look second; the event loop does the opposite before it sleeps, so one
        # of the two sees the other and no wake-up is lost.
        self._ready.append((fn, args))
        if self._sleeping:
            self._nudge()
        return not self._stopped

    def call_later(self, delay_s: float, fn: Callable[..., object], *args: Any) -> Timer:
        """Run `fn(*args)` after `delay_s` seconds of the clock; from any thread, never waits."""
        timer = Timer(self.clock.now() + delay_s, fn, args)
        if self.is_current():
            self._add_timer(timer)
        else:
            self.call_soon(self._add_timer, timer)
        return timer

    def add_reader(self, fd: int, fn: Callable[[], object]) -> None:
        """Call `fn()` whenever `fd` can be read or is hung up; from any thread.

        `fn` must not block: after a race with `pause_reader` there may be nothing to read.
        """
        with self._lock:
            watch = self._watches.get(fd)
            if watch is not None:
                watch.reader = fn
                return
            if self._stopped:
                msg = f"event loop {self.name} has stopped"
                raise RuntimeError(msg)
            watch = _Watch(fn)
            self._open().register(fd, watch.mask)
            self._watches[fd] = watch

    def remove_reader(self, fd: int) -> None:
        """Forget the reader; before `fd` is closed. A call already running finishes."""
        with self._lock:
            if self._watches.pop(fd, None) is None:
                return
            assert self._epoll is not None  # a watch exists only in an open epoll
            with contextlib.suppress(OSError):  # closed too early: epoll has forgotten it
                self._epoll.unregister(fd)

    def pause_reader(self, fd: int) -> None:
        """Stop calling the reader until `resume_reader`: one system call, from any thread."""
        self._pause(fd, paused=True)

    def resume_reader(self, fd: int) -> None:
        """Call the reader again, at once if there is something to read."""
        self._pause(fd, paused=False)

    def next_due(self) -> float | None:
        """Return when the next timer is due, on the clock; None when there is none."""
        while self._timers and not self._timers[0][2].pending:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def run_pending(self) -> int:
        """Run everything due now in this thread, and what that makes due; return how many.

        Raises:
            RuntimeError: the event loop has a thread, or is already running here.
        """
        if self._thread is not None or self._owner is not None:
            msg = f"event loop {self.name} is already run by a thread"
            raise RuntimeError(msg)
        self._owner = threading.get_ident()
        count = 0
        try:
            while True:
                self._fire_timers()
                if self._ready:
                    count += self._run_ready()
                    continue
                if self._epoll is None or not (served := self._serve(0.0)):
                    return count
                count += served
        finally:
            self._owner = None

    def _run(self) -> None:
        self._owner = threading.get_ident()
        try:
            while not self._stopped:
                self._fire_timers()
                self._run_ready()
                self._sleeping = True
                idle = not self._ready and not self._stopped
                self._serve(self._sleep_s() if idle else 0.0)
            self._drain()
        finally:
            self._owner = None
            self._close()

    def _drain(self) -> None:
        """Run what was queued before the stop; what these calls queue is left undone."""
        before, self._owner = self._owner, threading.get_ident()
        try:
            self._run_ready()
        finally:
            self._owner = before

    def _run_ready(self) -> int:
        """Run what is queued now; what that queues waits until descriptors had their turn."""
        ready = self._ready
        count = len(ready)
        for _ in range(count):
            fn, args = ready.popleft()
            self._call(fn, args)
        return count

    def _call(self, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        try:
            fn(*args)
        except BaseException as error:  # SystemExit in a callback must not end the system
            if isinstance(error, KeyboardInterrupt) and self._thread is None:
                raise
            try:
                self.on_error(error)
            except Exception as second:  # noqa: BLE001
                warn_of(second, f"on_error of event loop {self.name} raised")

    def _add_timer(self, timer: Timer) -> None:
        heapq.heappush(self._timers, (timer.deadline, next(self._order), timer))
        if len(self._timers) > self._prune_at:  # cancelled ones would pile up till their deadline
            self._timers = [entry for entry in self._timers if entry[2].pending]
            heapq.heapify(self._timers)
            self._prune_at = max(64, 2 * len(self._timers))

    def _fire_timers(self) -> None:
        """Move the timers that are due to the queue, the earliest first."""
        if not self._timers:
            return
        now = self.clock.now()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            self._ready.append((self._run_timer, (timer,)))

    @staticmethod
    def _run_timer(timer: Timer) -> None:
        call, timer._call = timer._call, None  # noqa: SLF001
        if call is not None:
            call[0](*call[1])

    def _sleep_s(self) -> float | None:
        due = self.next_due()
        if due is None:
            return None
        wait_s = max(0.0, due - self.clock.now())
        return None if wait_s and self._follows_clock else wait_s

    def _serve(self, timeout_s: float | None) -> int:
        """Wait for descriptors and call those who follow them; return how many were called."""
        assert self._epoll is not None  # opened by start() and by the first watch
        if timeout_s and timeout_s < SHORT_S and self._epoll.fileno() < SELECTABLE:
            select.select([self._epoll], [], [], timeout_s)
            timeout_s = 0.0
        ready = self._epoll.poll(timeout_s)
        self._sleeping = False
        count = 0
        for fd, event in ready:
            if fd == self._bell:
                os.eventfd_read(fd)
                continue
            watch = self._watches.get(fd)
            if watch is None:
                continue
            if not watch.paused and event & WORTH_A_READ:
                self._call(watch.reader, ())
                count += 1
        return count

    def _nudge(self) -> None:
        """Ring the bell if the thread sleeps."""
        with self._lock:  # the bell's number may be someone else's once it is closed
            if self._bell >= 0 and (self._sleeping or self._stopped or self._follows_clock):
                self._sleeping = False
                os.eventfd_write(self._bell, 1)

    def _pause(self, fd: int, *, paused: bool) -> None:
        with self._lock:
            watch = self._watches.get(fd)
            if watch is not None and watch.paused != paused:
                watch.paused = paused
                assert self._epoll is not None
                self._epoll.modify(fd, watch.mask)

    def _open(self) -> select.epoll:
        with self._lock:
            if self._epoll is None:
                self._epoll = select.epoll()
                self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                self._epoll.register(self._bell, select.EPOLLIN)
            return self._epoll

    def _close(self) -> None:
        with self._lock:
            self._timers.clear()
            self._ready.clear()
            self._watches.clear()
            if self._epoll is not None:
                self._epoll.close()
                self._epoll = None
                os.close(self._bell)
                self._bell = -1


def _warn(error: BaseException) -> None:
    warn_of(error, "an event loop callback raised")
