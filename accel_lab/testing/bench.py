"""A place for patterns where a test is the clock: nothing happens until it says so."""

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from accel_lab.actor.actor import Actor, ActorRef
from accel_lab.actor.clock import FakeClock
from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.letter import Promise
from accel_lab.actor.reply import Reply
from accel_lab.actor.system import ActorSystem
from accel_lab.blueprints.patterns.base.stage import Stage
from accel_lab.errors import AccelError, Cancelled, UserCodeError
from accel_lab.uncopied import Uncopied

A = TypeVar("A", bound=Actor)


class Bench(Uncopied):
    """Runs patterns and actors in the test's own thread, over a fake clock.

    Attributes:
        clock: stands still until `run` moves it.
        events: what happens here, as a system's.
        errors: what escaped a callback, which `close` raises.
    """

    _instead = "make another one"

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.errors: list[BaseException] = []
        self.event_loop = EventLoop("bench", self.clock, on_error=self.errors.append)
        self._system = ActorSystem("bench", event_loop=self.event_loop)
        self.events = self._system.events

    def spawn(
        self, factory: Callable[[], A], *, name: str | None = None, capacity: int = 1024
    ) -> ActorRef[A]:
        """Start an actor, as `System.spawn` does."""
        return self._system.spawn(factory, name=name, capacity=capacity)

    def stage(
        self,
        function: Callable[..., Any],
        *,
        seconds: float | Callable[[Any], float] = 0.0,
        parallelism: int = 1,
        retries: int = 2,
        repeatable: bool = True,
        name: str | None = None,
    ) -> Stage:
        """Return a stage whose calls take so long on the fake clock; the answer comes at their end.

        Parameters:
            seconds: a number, or a function of the value. Infinity is a call that never ends.
        """

        def call(value: Any) -> Reply[Any]:
            promise: Promise[Any] = Promise(self.event_loop, _take_back)
            takes = seconds(value) if callable(seconds) else seconds
            if takes < float("inf"):
                self.event_loop.call_later(takes, partial(_end, promise, function, value))
            return promise

        return Stage(
            call,
            inline=True,
            parallelism=parallelism,
            retries=retries,
            repeatable=repeatable,
            name=name or getattr(function, "__name__", "function").strip("<>"),
        )

    def run(self, seconds: float = 0.0) -> None:
        """Do all that is due now and within so many seconds, each at its own time."""
        until = self.clock.now() + seconds
        self.event_loop.run_pending()
        while (due := self.event_loop.next_due()) is not None and due <= until:
            self.clock.advance(max(0.0, due - self.clock.now()))
            self.event_loop.run_pending()
        self.clock.advance(until - self.clock.now())
        self.event_loop.run_pending()

    def answer(self, reply: Reply[Any], seconds: float = 3600.0) -> Any:
        """Run until a reply is there, and return its answer or raise its failure.

        Raises:
            TimeoutError: not within so many seconds of the fake clock.
        """
        until = self.clock.now() + seconds
        self.event_loop.run_pending()
        while not reply.done:
            due = self.event_loop.next_due()
            if due is None or due > until:
                raise TimeoutError(f"no answer within {seconds:g} s of the fake clock")
            self.run(due - self.clock.now())
        return reply.result(0.0)

    def close(self) -> None:
        """Stop all that lives here.

        Raises:
            BaseException: what escaped a callback first.
        """
        self._system.shutdown()
        self.event_loop.stop()
        if self.errors:
            raise self.errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _take_back(promise: Promise[Any]) -> None:
    promise.reject(Cancelled("the call was taken back"))


def _end(promise: Promise[Any], function: Callable[..., Any], value: Any) -> None:
    """Compute at the end of a simulated call."""
    if promise.done:
        return
    try:
        answer = function(value)
    except AccelError as error:
        promise.fail(error)
    except Exception as error:  # noqa: BLE001 - the asker is told
        failed = UserCodeError(f"{type(error).__name__}: {error}")
        failed.__cause__ = error
        promise.fail(failed)
    else:
        promise.resolve(answer)
