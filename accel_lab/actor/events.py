"""The stream of facts that every view, test and journal reads.

An event is frozen and in the past tense. Publishing costs about a microsecond while nobody
listens, never waits, and can be done from any thread, a finalizer included.
"""

import asyncio
import contextlib
import itertools
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from operator import itemgetter
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

import msgspec

from accel_lab.actor.unawaited import name_of, require_plain
from accel_lab.uncopied import Uncopied

E = TypeVar("E", bound="Event")
_number = itemgetter(0)
_LISTEN = "write def, or async for event in events.listen(…): …"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A fact; `at` is when it happened, in wall seconds since the epoch.

    Attributes:
        is_frequent: whether there may be thousands a second: they are forgotten before others.
    """

    is_frequent: ClassVar[bool] = False
    at: float = msgspec.field(default_factory=time.time)


class ActorStarted(Event, frozen=True):
    """An actor's first instance has started."""

    path: str


class ActorRestarted(Event, frozen=True):
    """A new instance took over the actor's address after `delay_s` of back-off.

    `attempt` counts the restarts in the strategy's window; 0 is one that was asked for.
    """

    path: str
    cause: BaseException
    attempt: int
    delay_s: float


class ActorStopped(Event, frozen=True):
    """An actor has stopped for good; `cause` is None if somebody asked it to."""

    path: str
    cause: BaseException | None


class DeadLetter(Event, frozen=True):
    """A message reached an actor that has stopped, or that does not handle it."""

    path: str
    message: object


class MessageFailed(Event, frozen=True):
    """A message that was told, not asked, failed; nobody else would hear of `cause`."""

    path: str
    message: object
    cause: BaseException


class HookFailed(Event, frozen=True):
    """A hook that cannot be retried (`stopped`, `restarting`) raised `cause`."""

    path: str
    hook: str
    cause: BaseException


class Subscription(Uncopied):
    """A callback's place in a stream; leaving the `with` block or `close()` ends it."""

    _instead = "subscribe again"

    __slots__ = ("_stream", "callback", "closed", "types")

    def __init__(
        self,
        stream: "EventStream",
        callback: Callable[[Event], object],
        types: tuple[type[Event], ...],
    ) -> None:
        self._stream = stream
        self.callback = callback
        self.types = types or (Event,)
        self.closed = False

    def close(self) -> None:
        """End the subscription, from any thread; a call already running finishes."""
        self.closed = True
        self._stream._sweep()  # noqa: SLF001  (the stream and its subscriptions are one noun)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EventStream(Uncopied):
    """One bounded, ordered history of events and those who follow it.

    Parameters:
        capacity: how many events the history keeps; older ones are forgotten and counted. Of each
            type that is frequent it keeps a tenth as many beside.
    """

    _instead = "take its events with history(), and keep these"

    def __init__(self, capacity: int = 10_000) -> None:
        if capacity < 1:
            msg = f"an event stream keeps at least 1 event, not {capacity}"
            raise ValueError(msg)
        self._history: deque[tuple[int, Event]] = deque(maxlen=capacity)
        self._frequent: defaultdict[type[Event], deque[tuple[int, Event]]]
        self._frequent = defaultdict(lambda: deque(maxlen=max(1, capacity // 10)))
        self._sequence = itertools.count()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._listeners: weakref.WeakSet[Listener[Event]] = weakref.WeakSet()
        # Re-entrant because a finalizer may close a subscription at any allocation.
        self._lock = threading.RLock()

    @property
    def published(self) -> int:
        """How many events were ever published; a mark for `wait_for(since=…)`."""
        return max((number for number, _ in self._kept()), default=-1) + 1

    @property
    def dropped(self) -> int:
        """How many of the published events the history has forgotten."""
        kept = self._kept()
        return max((number for number, _ in kept), default=-1) + 1 - len(kept)

    def __repr__(self) -> str:
        """Say how many events are remembered, of which types, and how many are forgotten."""
        kept = Counter(type(event).__name__ for event in self.history())
        told = ", ".join(f"{count} {name}" for name, count in kept.most_common())
        many = f"{kept.total()} event{'' if kept.total() == 1 else 's'}"
        return f"<EventStream of {many}{told and f': {told}'}; {self.dropped} forgotten>"

    def publish(self, event: Event) -> None:
        """Record `event` and call its subscribers in this thread, in order of subscription.

        Never waits. A callback that raises becomes a RuntimeWarning; the others still run.
        """
        with self._lock:  # for `follow`, whose events are remembered or called with, never both
            history = self._frequent[type(event)] if event.is_frequent else self._history
            history.append((next(self._sequence), event))
            subscriptions = self._subscriptions
        for subscription in subscriptions:
            if isinstance(event, subscription.types) and not subscription.closed:
                try:
                    subscription.callback(event)
                except Exception as error:  # noqa: BLE001  (a publisher never fails for a listener)
                    warn_of(error, f"a subscriber to {type(event).__name__} raised")

    def subscribe(self, callback: Callable[[E], object], *types: type[E]) -> Subscription:
        """Call `callback` with each event of `types` (all, when none is given) from now on.

        It runs in the publishing thread, so it must be quick and must not wait.

        Raises:
            InvalidArgument: it is an `async def`.
        """
        require_plain(callback, f"the callback {name_of(callback)}", _LISTEN)
        subscription = Subscription(self, cast("Callable[[Event], object]", callback), types)
        with self._lock:
            self._subscriptions = (*self._subscriptions, subscription)
        return subscription

    def follow(
        self, callback: Callable[[E], object], *types: type[E]
    ) -> tuple[list[E], int, Subscription]:
        """Subscribe, and return what was published before: each event is had once.

        Beside the remembered events of `types`, how many the history has forgotten. The callback
        may run before this returns.
        """
        with self._lock:
            return self.history(*types), self.dropped, self.subscribe(callback, *types)

    @overload
    def history(self) -> list[Event]: ...

    @overload
    def history(self, *types: type[E]) -> list[E]: ...

    def history(self, *types: type[Event]) -> list[Any]:
        """Return the remembered events of `types` (all, when none is given), oldest first."""
        wanted = types or (Event,)
        return [event for _, event in self._kept() if isinstance(event, wanted)]

    def _kept(self) -> list[tuple[int, Event]]:
        """Return the remembered events with their numbers, oldest first."""
        others = self._history.copy()
        frequent = [pair for kept in list(self._frequent.values()) for pair in kept.copy()]
        return sorted([*others, *frequent], key=_number) if frequent else list(others)

    @overload
    def listen(
        self, *, capacity: int = ..., where: Callable[[Event], bool] | None = ...
    ) -> "Listener[Event]": ...

    @overload
    def listen(
        self, *types: type[E], capacity: int = ..., where: Callable[[Event], bool] | None = ...
    ) -> "Listener[E]": ...

    def listen(
        self,
        *types: type[Event],
        capacity: int = 1000,
        where: Callable[[Event], bool] | None = None,
    ) -> "Listener[Any]":
        """Return an async iterator over the events of `types` published from this call on.

        Works in any asyncio loop. At most `capacity` events wait in it; when a consumer is
        slower the oldest are dropped and counted in `.dropped`.

        Parameters:
            where: says which of these events count; called in the publishing thread.
        """
        listener: Listener[Event] = Listener(capacity)
        follower = weakref.ref(listener)

        def offer(event: Event) -> None:
            target = follower()
            if target is not None and (where is None or where(event)):
                target._offer(event)  # noqa: SLF001

        listener._follow(self.subscribe(offer, *types))  # noqa: SLF001
        self._listeners.add(listener)
        return listener

    @overload
    def wait_for(
        self, wanted: type[E], timeout_s: float = ..., *, since: int | None = ...
    ) -> E: ...

    @overload
    def wait_for(
        self, wanted: Callable[[Event], bool], timeout_s: float = ..., *, since: int | None = ...
    ) -> Event: ...

    def wait_for(
        self,
        wanted: type[Event] | Callable[[Event], bool],
        timeout_s: float = 10.0,
        *,
        since: int | None = None,
    ) -> Event:
        """Block until an event of a type, or one that a predicate accepts, is published.

        Parameters:
            since: a mark taken earlier from `published`; events after it count as well, so
                that what happened between the mark and this call is not missed.

        Raises:
            TimeoutError: none came within `timeout_s`.
        """
        if isinstance(wanted, type):
            accepts: Callable[[Event], bool] = lambda event: isinstance(event, wanted)  # noqa: E731
        else:
            accepts = wanted
        found: list[Event] = []
        arrived = threading.Event()

        def offer(event: Event) -> None:
            if accepts(event):
                found.append(event)
                arrived.set()

        with self.subscribe(offer, Event):
            if since is not None:
                for number, event in self._kept():
                    if number >= since and accepts(event):
                        return event
            if not arrived.wait(timeout_s):
                name = getattr(wanted, "__name__", repr(wanted))
                msg = f"no event matched {name} within {timeout_s:g} s"
                raise TimeoutError(msg)
        return found[0]

    def close(self) -> None:
        """End every listener; what is queued in it can still be read. Later events are kept."""
        for listener in list(self._listeners):
            listener.close()

    def _sweep(self) -> None:
        with self._lock:
            self._subscriptions = tuple(s for s in self._subscriptions if not s.closed)


class Listener(Uncopied, Generic[E]):
    """One consumer's bounded queue of events, read with `async for` by one task at a time.

    Leaving `async with`, `close()`, or dropping the last reference ends its subscription.
    """

    _instead = "listen again"

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            msg = f"a listener holds at least 1 event, not {capacity}"
            raise ValueError(msg)
        self._capacity = capacity
        self._queue: deque[E] = deque()
        self._dropped = 0
        self._closed = False
        self._lock = threading.RLock()
        self._waiter: asyncio.Future[None] | None = None
        self._subscription: Subscription | None = None

    @property
    def dropped(self) -> int:
        """How many events were lost because the consumer was slower than the stream."""
        return self._dropped

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        """Return the next event, waiting for it.

        Raises:
            StopAsyncIteration: the listener was closed and its queue is empty.
            RuntimeError: another task is already waiting in this listener.
        """
        while True:
            with self._lock:
                if self._queue:
                    return self._queue.popleft()
                if self._closed:
                    raise StopAsyncIteration
                if self._waiter is not None:
                    msg = "another task already waits in this listener; give each its own"
                    raise RuntimeError(msg)
                waiter = self._waiter = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                with self._lock:
                    if self._waiter is waiter:
                        self._waiter = None

    def close(self) -> None:
        """End the subscription, from any thread; iteration stops after what is queued."""
        if self._subscription is not None:
            self._subscription.close()
        with self._lock:
            self._closed = True
            waiter, self._waiter = self._waiter, None
        wake(waiter)

    async def aclose(self) -> None:
        """End the subscription, as `close` does; what is queued is discarded."""
        self.close()
        with self._lock:
            self._queue.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _follow(self, subscription: Subscription) -> None:
        self._subscription = subscription
        weakref.finalize(self, subscription.close).atexit = False

    def _offer(self, event: E) -> None:
        with self._lock:
            if self._closed:
                return
            if len(self._queue) >= self._capacity:
                self._queue.popleft()
                self._dropped += 1
            self._queue.append(event)
            waiter, self._waiter = self._waiter, None
        wake(waiter)


def wake(waiter: "asyncio.Future[None] | None") -> None:
    """Complete `waiter` in its own loop; a loop that is closed has nobody to wake."""
    if waiter is None:
        return
    with contextlib.suppress(RuntimeError):
        waiter.get_loop().call_soon_threadsafe(
            lambda: None if waiter.done() else waiter.set_result(None)
        )


def warn_of(error: BaseException, what: str) -> None:
    """Issue a RuntimeWarning about `error`; never raises, even where warnings are errors."""
    try:
        warnings.warn(f"{what}: {error!r}", RuntimeWarning, stacklevel=3)
    except (RuntimeWarning, ValueError):  # it is an error here, or stderr is closed
        if sys.stderr is not None and not sys.stderr.closed:
            sys.stderr.write(f"{what}\n")
            traceback.print_exception(error)
