"""The root of an actor tree.

A system owns its tree and, unless it is given one, its event loop. Systems share nothing, so
several live side by side in one process.
"""

import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

from accel_lab.actor.actor import Actor, ActorRef
from accel_lab.actor.cell import Cell, State
from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.actor.letter import AskPump
from accel_lab.actor.supervision import OneForOne, Strategy
from accel_lab.errors import SystemClosed
from accel_lab.uncopied import Uncopied

S = TypeVar("S", bound=Actor)


class ActorSystem(Uncopied):
    """A tree of supervised actors on one event loop.

    Parameters:
        name: names the event loop's thread.
        event_loop: where everything runs; the caller starts and stops it. Without one the
            system makes, starts and stops its own.
        events: where lifecycle events go; a new stream when not given.
        strategy: how the system supervises its top-level actors. What they escalate stops them.
    """

    def __init__(
        self,
        name: str = "actors",
        *,
        event_loop: EventLoop | None = None,
        events: EventStream | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        self.name = name
        self.events = EventStream() if events is None else events
        self._owns_dispatcher = event_loop is None
        self.event_loop = EventLoop(name) if event_loop is None else event_loop
        self.pump = AskPump(self.event_loop)
        # Guards names and lists of children; re-entrant because closing nests.
        self.lock = threading.RLock()
        self._root = Cell(self, None, name, Actor, 1)
        self._root.state = State.RUNNING
        self._root.family.strategy = strategy or OneForOne()
        if self._owns_dispatcher:
            self.event_loop.start()

    @property
    def children(self) -> tuple[ActorRef[Any], ...]:
        """The living top-level actors, in the order of their spawning."""
        return tuple(cell.ref for cell in self._root.family.living())

    def spawn(
        self, factory: Callable[[], S], *, name: str | None = None, capacity: int = 1024
    ) -> ActorRef[S]:
        """Start a top-level actor made by `factory`; from any thread, returns at once.

        Raises:
            NameTaken: a living top-level actor has this name.
            InvalidArgument: the name is empty or holds a slash.
            SystemClosed: the system was shut down.
        """
        if self._root.stopping:
            msg = f"actor system {self.name} is closed"
            raise SystemClosed(msg)
        return self._root.spawn(factory, name, capacity)

    def orphan(self) -> None:
        """Have this copy, in a forked child, take no message: its thread is the parent's."""
        ahead = [self._root]
        while ahead:
            cell = ahead.pop()
            cell.stopping = True  # without the lock, which another thread may have held
            ahead += cell.family.members_unlocked()

    def stop(self, ref: ActorRef[Any]) -> None:
        """Stop an actor after the message it is handling; its name is free at once."""
        ref.stop()

    def shutdown(self, timeout_s: float = 10.0) -> None:
        """Stop every actor, children first, and answer every queued ask with `ActorStopped`.

        Waits for the handler that is running. Safe to repeat, and from any thread.

        Raises:
            TimeoutError: a handler did not return in time. Queued asks are answered all the
                same, and the tree stops when the handler returns.
        """
        self._root.stopping = True
        event_loop = self.event_loop
        if event_loop.is_running and not event_loop.is_current():
            done = threading.Event()
            queued = event_loop.call_soon(self._end, done)
            if queued and not done.wait(timeout_s):
                self._root.abandon()
                msg = f"a handler of {self.name} still runs after {timeout_s:g} s"
                raise TimeoutError(msg)
        self._root.terminate(None)
        if self._owns_dispatcher:
            event_loop.stop()

    def _end(self, done: threading.Event) -> None:
        self._root.terminate(None)
        done.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
