"""The one typed answer that every request gets.

A reply may be waited for from any thread and from any asyncio loop. Whoever waits may first
have to read the wire on which the answer arrives; that is the job of the reply's `Pump`.
"""

import asyncio
import textwrap
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

from accel_lab.display.failure import headline
from accel_lab.display.summary import as_html
from accel_lab.errors import AccelError
from accel_lab.host_waits import HOST_WAITS
from accel_lab.uncopied import Uncopied

R = TypeVar("R")

PENDING, DONE, FAILED = 0, 1, 2
GLANCE_S = 0.05
"""Who waits without end looks up so often."""
TOLD = 200  # characters of an answer that a notebook shows beside its handle

_TAKE = "await it or call .result()"

# Re-entrant, as all that a finalizer may come upon: it may send, and so may what it meets.
_waiters_lock = threading.RLock()


class Pump(Protocol):
    """What moves answers from a wire to their replies while somebody waits."""

    def wait(self, reply: "Reply[Any]", timeout_s: float | None) -> None:
        """Block the calling thread until `reply` is done or the time is over."""

    def attend(self, loop: asyncio.AbstractEventLoop, reply: "Reply[Any]") -> bool:
        """Have `loop` read the wire for `reply`; True when `leave` must follow."""

    def leave(self, loop: asyncio.AbstractEventLoop, reply: "Reply[Any]") -> None:
        """Undo one `attend`."""

    def taken(self, reply: "Reply[Any]") -> None:
        """Somebody takes an answer that had come before it was waited for."""

    def cancel(self, reply: "Reply[Any]") -> None:
        """Take the request back."""

    def abandon(self, reply: "Reply[Any]") -> None:
        """Take the request back because the task was cancelled that awaits it."""

    def unclaimed(self, reply: "Reply[Any]") -> None:
        """Remember a failure that nobody was waiting for."""

    def interrupted(self, reply: "Reply[Any]") -> None:
        """A waiting thread was interrupted (Ctrl-C)."""


class Unmade:
    """An answer that is made when somebody looks at it, in the thread of whoever does.

    Parameters:
        make: makes it; it may run the user's code, and take long.
    """

    __slots__ = ("_lock", "_made", "_make")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._made: Any = None
        self._lock = threading.RLock()

    def made(self) -> Any:
        """Make it the first time, and return it.

        Raises:
            AccelError: it cannot be made.
        """
        with self._lock:
            if self._make is not None:
                self._made, self._make = self._make(), None
            return self._made


class Reply(Uncopied, Generic[R]):
    """The answer to one request: `await` it, or call `result()`."""

    _instead = "it is the answer of one request: take it with result(), or await it, and keep that"

    __slots__ = (
        "__weakref__",
        "_error",
        "_pump",
        "_state",
        "_value",
        "_waiters",
        "library",
        "origin",
    )

    def __init__(self, pump: Pump | None = None, origin: Any = None) -> None:
        self._state = PENDING
        self._value: Any = None
        self._error: AccelError | None = None
        self._waiters: list[Callable[[], None]] | None = None
        self._pump = pump
        self.origin = origin
        self.library = ""

    @property
    def done(self) -> bool:
        """Whether the answer is there; never blocks."""
        return self._state != PENDING

    @property
    def failed(self) -> bool:
        """Whether the answer is a failure; never blocks."""
        return self._state == FAILED

    @property
    def copying(self) -> str:
        """What a bar says while a large answer is copied; empty for an answer that is not."""
        return ""

    @property
    def error(self) -> AccelError | None:
        """The failure if the request has failed, else None; never blocks, and takes nothing."""
        return self._error

    def result(self, timeout_s: float | None = None) -> R:
        """Block the calling thread until the answer is there, and return it.

        Raises:
            AccelError: the request's own failure.
            TimeoutError: no answer within `timeout_s` seconds; the request goes on.
        """
        if self._state == PENDING:
            pump, noted = self._pump, False
            try:
                noted = HOST_WAITS.begin()
                if pump is None:
                    self.block(timeout_s)
                else:
                    pump.wait(self, timeout_s)
            finally:
                if noted:
                    HOST_WAITS.end()
            if self._state == PENDING:
                raise TimeoutError(f"no answer within {timeout_s} s; the request keeps running")
        elif self._pump is not None:
            self._pump.taken(self)
        return self._outcome()

    def cancel(self) -> None:
        """Take the request back; without an answer yet, its answer is then `Cancelled`.

        A message to a device is never run if it is not enqueued yet; else it runs to its end, and
        its result is freed then. A function of the user's that runs is interrupted, as by Ctrl-C.
        A message to an actor is only taken back before it is handled.
        """
        if self._state == PENDING and self._pump is not None:
            self._pump.cancel(self)

    def __await__(self) -> Generator[Any, None, R]:
        """Wait in the running asyncio loop; cancelling the wait takes the request back."""
        if self._state == PENDING:
            loop = asyncio.get_running_loop()
            pump, noted = self._pump, False
            attended = pump is not None and pump.attend(loop, self)
            try:
                noted = HOST_WAITS.begin()
                if self._state == PENDING:
                    future: asyncio.Future[None] = loop.create_future()
                    self.add_waiter(partial(_wake, loop, future))
                    yield from future
                elif attended:
                    yield  # it was quick, and yet the loop's other tasks have their turn
            except asyncio.CancelledError:
                if self._state == PENDING and pump is not None:
                    pump.abandon(self)
                raise
            finally:
                if noted:
                    HOST_WAITS.end()
                if attended and pump is not None:
                    pump.leave(loop, self)
        elif self._pump is not None:
            self._pump.taken(self)
        return self._outcome()

    def _outcome(self) -> R:
        if self._error is not None:
            raise self._error.take()
        return cast("R", self._look())

    def _look(self) -> Any:
        """Return the value, which is made here if nobody has looked at it before."""
        value = self._value
        if type(value) is not Unmade:
            return value
        try:
            self._value = value = value.made()
        except AccelError as error:
            # Its frames lead to those of whoever looks, and it is kept longer than they are.
            self._error, self._state = error.with_traceback(None), FAILED
            self._value = None
            raise error.take() from error.__cause__
        return value

    def passed_on(self) -> Any:
        """Return what another reply may have for its answer; this one has not failed."""
        return self._value

    def resolve(self, value: Any = None) -> None:
        """Complete with a value; the completing thread runs the waiters."""
        if self._state != PENDING:
            return
        self._value = value
        self._state = DONE
        if self._waiters is not None:
            self._wake_all()

    def reject(self, error: AccelError) -> None:
        """Complete with a failure."""
        if self._state == PENDING and not self.fail(error) and self._pump is not None:
            self._pump.unclaimed(self)

    def fail(self, error: AccelError) -> bool:
        """Complete with a failure; return whether somebody waits, who is told of it."""
        if self._state != PENDING:
            return True
        self._error = error
        self._state = FAILED
        if self._waiters is None:
            return False
        self._wake_all()
        return True

    def take_back(self, error: AccelError) -> Callable[[], object] | None:
        """Complete with `error` though the request may still be at work.

        Returns what to call when it no longer is, if there is something to let go of then.
        """
        self.reject(error)
        return None

    def _wake_all(self) -> None:
        with _waiters_lock:
            waiters, self._waiters = self._waiters, None
        for wake in waiters or ():
            wake()

    def add_waiter(self, wake: Callable[[], None]) -> None:
        """Call `wake` once when done, at once if that has happened; `wake` may be called twice.

        Whoever waits is told of a failure, however soon it came, and nobody else has to be.
        """
        with _waiters_lock:
            if self._waiters is None:
                self._waiters = []
            self._waiters.append(wake)
        if self._state != PENDING:
            if self._error is not None:
                self._error.take()
            wake()

    def detach(self) -> None:
        """Wait without the pump from now on: the wire is another process's."""
        self._pump = None

    def block(self, timeout_s: float | None) -> None:
        """Wait on a lock; used where no wire has to be read."""
        gate = threading.Lock()
        gate.acquire()
        self.add_waiter(partial(_open, gate))
        acquire(gate, None if timeout_s is None else time.monotonic() + timeout_s)

    def __repr__(self) -> str:
        word = ("pending", "done", "failed")[self._state]
        detail = f": {self._error}" if self._error is not None else f": {_TAKE}"
        return f"<{type(self).__name__} {word}{detail}>"

    def _repr_html_(self) -> str:
        lines = [("state", ("pending", "done", "failed")[self._state])]
        if self._error is not None:
            lines += [("error", headline(self._error)), ("what to do", self._error.remedy)]
        elif self._state == DONE:
            lines.append(("answer", told(self._look())))
        else:
            lines.append(("what to do", _TAKE))
        if (cell := getattr(self.origin, "cell", None)) is not None:
            lines.append(("sent by", f"cell {cell}"))
        return as_html(type(self).__name__, lines)


def acquire(gate: threading.Lock, deadline: float | None) -> bool:
    """Take a lock, waiting until a monotonic time at most; False when that is over.

    It wakes now and then: the system may give Ctrl-C to any thread, and Python heeds it when the
    main one runs.
    """
    while True:
        left = GLANCE_S if deadline is None else min(deadline - time.monotonic(), GLANCE_S)
        if gate.acquire(timeout=max(left, 0.0)):
            return True
        if left <= 0:
            return False


def told(value: object) -> str:
    """Return an answer on one line; a long one is cut."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return textwrap.shorten(repr(value), TOLD)


def _open(gate: threading.Lock) -> None:
    if gate.locked():
        try:
            gate.release()
        except RuntimeError:  # the other of two wake-ups was faster
            return


def _wake(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]") -> None:
    """Complete a waiting future from whatever thread this is."""
    if asyncio._get_running_loop() is loop:  # noqa: SLF001 - get_running_loop() raises elsewhere
        _set(future)
    else:
        try:
            loop.call_soon_threadsafe(_set, future)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
