"""Actors that a user of the system spawned, beside those that supervise its devices."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from accel_lab.actor.actor import Actor, ActorRef
from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.actor.supervision import Strategy
from accel_lab.actor.system import ActorSystem

A = TypeVar("A", bound=Actor)


class OwnActors:
    """Actors on a thread of their own, which starts with the first of them.

    A handler that waits holds up the others, and not those that look after the system.
    """

    def __init__(
        self,
        name: str,
        events: EventStream,
        strategy: Strategy,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._thread = EventLoop(f"accel_lab {name} actors", on_error=on_error)
        self._actors = ActorSystem(name, event_loop=self._thread, events=events, strategy=strategy)
        self._starting = threading.RLock()  # a finalizer of the user's may spawn in the middle
        self._started = self._ended = False

    @property
    def children(self) -> tuple[ActorRef[Any], ...]:
        """The living ones, in the order of their spawning."""
        return self._actors.children

    @property
    def is_idle(self) -> bool:
        """Whether none of them handles a message, and none is queued; any thread."""
        return all(ref.is_idle for ref in self.children)

    def spawn(self, factory: Callable[[], A], *, name: str | None, capacity: int) -> ActorRef[A]:
        """Start one, as `ActorSystem.spawn`; any thread."""
        with self._starting:
            if not self._started and not self._ended:
                self._started = True
                self._thread.start()
        return self._actors.spawn(factory, name=name, capacity=capacity)

    def end(self, timeout_s: float) -> None:
        """Stop them, each after the message that it handles; none is started any more.

        Raises:
            TimeoutError: a handler did not return in time.
        """
        with self._starting:
            self._ended = True
        self._actors.shutdown(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Stop them and their thread.

        Raises:
            TimeoutError: a handler did not return in time; the thread stays.
        """
        self.end(timeout_s)
        self._thread.stop()

    def orphan(self) -> None:
        """Have this copy, in a forked child, take no message."""
        self._actors.orphan()
