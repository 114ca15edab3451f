"""What an actor's author writes, and what others hold of it.

An actor's hooks and handlers run on its system's event loop, one message at a time; none may
block. Whoever sends holds an `ActorRef`, which stays the same through every restart.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.actor.supervision import OneForOne, Strategy
from accel_lab.actor.unawaited import require_plain
from accel_lab.errors import AccelError
from accel_lab.uncopied import Address

if TYPE_CHECKING:
    from accel_lab.actor.cell import Cell
    from accel_lab.actor.clock import Clock
    from accel_lab.actor.event_loop import EventLoop
    from accel_lab.actor.events import EventStream

A = TypeVar("A")
M = TypeVar("M", bound=Message[Any])
R = TypeVar("R")
S = TypeVar("S", bound="Actor")
S_co = TypeVar("S_co", bound="Actor", covariant=True)
T = TypeVar("T")

MARK = "_handled_types"
HOOKS = ("started", "restarting", "stopped")
_PLAIN = "write def, return what there is, or a Reply, which the asker then waits for"


def handles(*message_types: type[M]) -> Callable[[Callable[[A, M], T]], Callable[[A, M], T]]:
    """Make a method the handler of these message types.

    It returns the reply's value, or a `Reply` whose outcome becomes the asker's.

    Raises:
        InvalidArgument: it is an `async def`.
    """

    def mark(method: Callable[[A, M], T]) -> Callable[[A, M], T]:
        require_plain(method, f"the handler {method.__qualname__}", _PLAIN)
        setattr(method, MARK, message_types)
        return method

    return mark


class Sight(NamedTuple):
    """What the tree shows of an actor, beside its place and its mailbox.

    Attributes:
        detail: one line for people.
        waiting: requests that it has taken from its mailbox and not begun.
        in_flight: those that it has begun.
    """

    detail: str = ""
    waiting: int = 0
    in_flight: int = 0


class Actor:
    """State that only its own handlers touch.

    Attributes:
        strategy: how this actor supervises its children.
        context: its place in the tree; there from `started()` on, not yet in `__init__`.
    """

    strategy: ClassVar[Strategy] = OneForOne()
    handlers: ClassVar[dict[type[Message[Any]], str]] = {}
    context: "ActorContext"

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect the handlers.

        Raises:
            TypeError: two methods handle the same message type.
            InvalidArgument: a hook is an `async def`.
        """
        super().__init_subclass__(**options)
        for hook in HOOKS:
            require_plain(getattr(cls, hook), f"the hook {cls.__name__}.{hook}", "write def")
        marked: dict[str, tuple[type[Message[Any]], ...]] = {}
        for owner in reversed(cls.__mro__):
            marked.update(
                (name, getattr(member, MARK))
                for name, member in vars(owner).items()
                if hasattr(member, MARK)
            )
        cls.handlers = {}
        for name, message_types in marked.items():
            for message_type in message_types:
                other = cls.handlers.setdefault(message_type, name)
                if other != name:
                    msg = (
                        f"{cls.__name__} handles {message_type.__name__} twice: "
                        f"in {other} and in {name}"
                    )
                    raise TypeError(msg)

    def sight(self) -> Sight:
        """Return what the tree shows of it; any thread calls this, so it only reads."""
        return Sight()

    def started(self) -> None:
        """Run before the first message of each instance; a failure counts as a handler's."""

    def restarting(self, cause: AccelError) -> None:
        """Release what this instance holds; a new one takes over. Its children have stopped."""

    def stopped(self) -> None:
        """Release what this instance holds; the actor ends. Its children have stopped."""


class ActorRef(Address, Generic[S_co]):
    """The stable address of an actor; usable from any thread."""

    _instead = "the actor lives in this process; send it messages from here"

    __slots__ = ("__weakref__", "_cell")

    def __init__(self, cell: "Cell") -> None:
        self._cell = cell

    @property
    def name(self) -> str:
        """The actor's name among its siblings."""
        return self._cell.name

    @property
    def path(self) -> str:
        """The names from the root down, as `/gpu0/context`."""
        return self._cell.path

    @property
    def is_alive(self) -> bool:
        """Whether the actor takes messages: running, or about to (re)start."""
        return not self._cell.stopping

    @property
    def state(self) -> str:
        """What the actor is doing: `starting`, `running`, `restarting` or `stopped`."""
        return "stopped" if self._cell.stopping else self._cell.state.value

    @property
    def restarts(self) -> int:
        """How often it has been restarted."""
        return self._cell.restarts

    @property
    def cause(self) -> AccelError | None:
        """What its last restart, or its end, came of; None when there was none."""
        return self._cell.cause

    @property
    def kind(self) -> str:
        """The name of its class; "" before its first start."""
        return self._cell.kind

    @property
    def children(self) -> "tuple[ActorRef[Any], ...]":
        """The living children, in the order of their spawning."""
        return tuple(child.ref for child in self._cell.family.living())

    @property
    def depth(self) -> int:
        """How many messages are queued."""
        return len(self._cell.mailbox)

    @property
    def is_idle(self) -> bool:
        """Whether it and its children handle no message, and none is queued or owes an answer."""
        return self._cell.is_idle and all(child.is_idle for child in self.children)

    @property
    def sight(self) -> Sight:
        """What the actor shows of itself."""
        return self._cell.sight()

    def tell(self, message: Message[Any], timeout_s: float = 10.0) -> None:
        """Queue `message`, waiting up to `timeout_s` for room (never on the event loop).

        To a stopped actor it becomes a `DeadLetter` event; a failure becomes `MessageFailed`.

        Raises:
            QueueFull: the mailbox had no room in time.
        """
        self._cell.tell(message, timeout_s)

    def ask(self, message: Message[R], timeout_s: float = 10.0) -> Reply[R]:
        """Queue `message`, waiting up to `timeout_s` for room; its reply is always answered.

        The reply fails with what the handler raised, with `ActorStopped` when the actor has
        stopped or stops first, with `InvalidArgument` when it has no such handler.

        Raises:
            QueueFull: the mailbox had no room in time.
        """
        return self._cell.ask(message, timeout_s)

    def stop(self) -> None:
        """Stop the actor after the message it is handling; its name is free at once."""
        self._cell.request_stop()

    def __repr__(self) -> str:
        return f"<ActorRef {self.path} {'alive' if self.is_alive else 'stopped'}>"


class Terminated(Message[None], frozen=True):
    """Told to those who watch `ref`: it has stopped for good; `cause` is None if asked to."""

    ref: ActorRef[Any]
    cause: AccelError | None


class ActorContext:
    """An actor's place in its system; for use on the event loop, by the actor alone."""

    __slots__ = ("_cell", "clock", "event_loop", "events", "self_ref")

    def __init__(self, cell: "Cell") -> None:
        self._cell = cell
        self.self_ref: ActorRef[Any] = cell.ref
        self.event_loop: EventLoop = cell.system.event_loop
        self.clock: Clock = cell.system.event_loop.clock
        self.events: EventStream = cell.system.events

    @property
    def parent(self) -> ActorRef[Any] | None:
        """The supervisor; None for an actor that the system itself supervises."""
        parent = self._cell.parent
        return None if parent is None or parent.parent is None else parent.ref

    @property
    def children(self) -> tuple[ActorRef[Any], ...]:
        """The living children, in the order of their spawning."""
        return tuple(child.ref for child in self._cell.family.living())

    def spawn(
        self, factory: Callable[[], S], *, name: str | None = None, capacity: int = 1024
    ) -> ActorRef[S]:
        """Start a child made by `factory`, which is called again for each restart.

        Returns at once; the child starts in a turn of its own.

        Raises:
            NameTaken: a living sibling has this name.
            InvalidArgument: the name is empty or holds a slash.
            ActorStopped: this actor is stopping.
        """
        return self._cell.spawn(factory, name, capacity)

    def stop(self, ref: ActorRef[Any]) -> None:
        """Stop `ref` after the message it is handling; its name is free at once."""
        ref.stop()

    def forgive(self) -> None:
        """Forget the restarts that the children share a budget for."""
        self._cell.family.forgive()

    def run(self, instance: Actor, function: Callable[..., object], *args: Any) -> None:
        """Call what a timer or another thread handed in, as if it were a handler of `instance`.

        Nothing is called once another instance has taken over. A failure is the instance's, which
        is replaced.
        """
        self._cell.run(instance, function, args)

    def watch(self, ref: ActorRef[Any]) -> None:
        """Have `Terminated` told to this instance when `ref` stops (now, if it has).

        A restart of the watcher ends its watches: `started()` sets them up again.

        Raises:
            InvalidArgument: this actor has no handler for `Terminated`.
        """
        self._cell.watch(ref._cell)  # noqa: SLF001  (an address and its cell are one thing)

    def unwatch(self, ref: ActorRef[Any]) -> None:
        """End a watch; a `Terminated` already queued still arrives."""
        self._cell.unwatch(ref._cell)  # noqa: SLF001
