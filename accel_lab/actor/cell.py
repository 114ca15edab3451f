"""An actor's seat: what stays when its instance is replaced.

The cell owns the address, the mailbox, the children and the restart budget. All of it runs on
the event loop, save `ask`, `tell`, `spawn` and `request_stop`, which any thread may call.
"""

from collections.abc import Callable
from enum import Enum
from functools import partial
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, TypeVar

from accel_lab.actor import events
from accel_lab.actor.actor import Actor, ActorContext, ActorRef, Sight, Terminated
from accel_lab.actor.family import Family, Restart
from accel_lab.actor.letter import Letter, Promise
from accel_lab.actor.mailbox import Mailbox
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.actor.supervision import RestartWindow, as_accel_error
from accel_lab.actor.unawaited import UNAWAITED, discarded, refuse
from accel_lab.errors import AccelError, ActorFailed, ActorStopped, Directive, InvalidArgument

if TYPE_CHECKING:
    from accel_lab.actor.system import ActorSystem

R = TypeVar("R")
S = TypeVar("S", bound=Actor)


class State(Enum):
    """Where a cell is in its life."""

    NEW = "starting"
    RUNNING = "running"
    SUSPENDED = "restarting"
    STOPPED = "stopped"


class Cell:
    """The seat of one actor."""

    def __init__(
        self,
        system: "ActorSystem",
        parent: "Cell | None",
        name: str,
        factory: Callable[[], Actor],
        capacity: int,
    ) -> None:
        self.system = system
        self.parent = parent
        self.name = name
        self.path: str = "" if parent is None else f"{parent.path}/{name}"
        self.state = State.NEW
        self.stopping = False
        self.family = Family(self)
        # How often its supervisor has restarted this actor.
        self.budget: RestartWindow | None = None
        self.mailbox: Mailbox[Letter] = Mailbox(
            capacity, name=self.path, never_waits=system.event_loop.is_current
        )
        self.ref: ActorRef[Any] = ActorRef(self)
        self.cause: AccelError | None = None
        self.restarts = 0
        self.kind = ""
        self._factory = factory
        self._context = ActorContext(self)
        self._instance: Actor | None = None
        self._restart: Restart | None = None
        self._handlers: dict[type[Message[Any]], str] = {}
        self._had_started = False
        # Letters whose handler returned a pending reply.
        self._deferred: set[Letter] = set()
        # Dicts, because they keep the order.
        self._watchers: dict[Cell, None] = {}
        self._watching: dict[Cell, None] = {}

    # --- from any thread ---

    def ask(self, message: Message[R], timeout_s: float) -> Reply[R]:
        """Deliver `message` with a reply; see `ActorRef.ask`."""
        letter = Letter(message, None)
        reply: Reply[R] = Reply(self.system.pump, letter)
        letter.reply = reply
        self._post(letter, timeout_s)
        return reply

    def tell(self, message: Message[Any], timeout_s: float) -> None:
        """Deliver `message`; see `ActorRef.tell`."""
        self._post(Letter(message, None), timeout_s)

    def spawn(self, factory: Callable[[], S], name: str | None, capacity: int) -> ActorRef[S]:
        """Seat a child; see `ActorContext.spawn`."""

        def seat(name: str) -> Cell:
            return Cell(self.system, self, name, factory, capacity)

        return self.family.spawn(factory, name, seat)

    def request_stop(self) -> None:
        """Handle no further message, free the name, and stop in the next turn."""
        self._close_door()
        self.system.event_loop.call_soon(self.terminate, None)

    def abandon(self) -> None:
        """Answer whatever is queued although the event loop does not respond."""
        self._close_door()
        for child in self.family.members():
            child.abandon()
        self._bury_queued()

    # --- on the event loop: messages ---

    def _post(self, letter: Letter, timeout_s: float, *, notice: bool = False) -> None:
        event_loop = self.system.event_loop
        try:
            if self.stopping:
                raise self.gone()
            if self.mailbox.put(letter, timeout_s, over_capacity=notice):
                event_loop.call_soon(self._turn)
        except ActorStopped:
            self._bury(letter)
        else:
            if event_loop.is_stopped:  # nobody will ever take it out
                self._bury_queued()

    def _turn(self) -> None:
        """Handle one message, then let the other actors have theirs."""
        letter = self.mailbox.take() if self._may_run() else None
        if letter is not None and letter.claim():
            self._handle(letter)
        if self.mailbox.end_turn(again=self._may_run()):
            self.system.event_loop.call_soon(self._turn)

    def _may_run(self) -> bool:
        return self.state is State.RUNNING and not self.stopping

    def _handle(self, letter: Letter) -> None:
        handler = self._handlers.get(type(letter.message))
        if handler is None:
            self._refuse(letter)
            return
        try:
            outcome = getattr(self._instance, handler)(letter.message)
            if type(outcome) in UNAWAITED:
                refuse(outcome, f"{self.kind}.{handler}")
        except BaseException as raised:
            # The history keeps the error; it must not keep the operands in the failed frames too.
            clear_frames(raised.__traceback__)
            error = as_accel_error(raised)
            try:
                self.fail(error)  # first the restart, then the answer: the asker finds it begun
            finally:
                self._answer_failure(letter, error)
            if isinstance(raised, KeyboardInterrupt):
                raise
            return
        if isinstance(outcome, Reply):
            self._deferred.add(letter)
            if isinstance(outcome, Promise):
                letter.follow(outcome)
            outcome.add_waiter(partial(self._chained, letter, outcome))
        else:
            letter.resolve(outcome)

    def run(self, instance: Actor, function: Callable[..., object], args: tuple[Any, ...]) -> None:
        """Call a function as a handler of `instance`; see `ActorContext.run`."""
        if self._instance is not instance or not self._may_run():
            return
        try:
            function(*args)
        except BaseException as raised:
            clear_frames(raised.__traceback__)
            error = as_accel_error(raised)
            if error.directive is Directive.RESUME:  # nobody else is told
                error = ActorFailed(
                    f"a call of {self.path} raised {type(raised).__name__}: {raised}"
                )
                error.__cause__ = raised
            self.fail(error)
            if isinstance(raised, KeyboardInterrupt):
                raise

    def _chained(self, letter: Letter, source: Reply[Any]) -> None:
        """Pass a chained outcome on; runs in whatever thread completed `source`, maybe twice."""
        try:
            self._deferred.remove(letter)
        except KeyError:  # answered already, here or by a restart
            return
        error = source.error
        if error is None:
            letter.resolve(source.passed_on())
        else:
            self._answer_failure(letter, error)

    def _answer_failure(self, letter: Letter, error: AccelError) -> None:
        letter.reject(error)
        if letter.reply is None:
            self.system.events.publish(events.MessageFailed(self.path, letter.message, error))

    def _refuse(self, letter: Letter) -> None:
        known = sorted(known.__name__ for known in self._handlers)
        msg = (
            f"{self.path} ({type(self._instance).__name__}) handles {', '.join(known) or 'nothing'}"
            f"; it was sent {type(letter.message).__name__}"
        )
        self.system.events.publish(events.DeadLetter(self.path, letter.message))
        letter.reject(InvalidArgument(msg))

    def _bury(self, letter: Letter) -> None:
        self.system.events.publish(events.DeadLetter(self.path, letter.message))
        letter.reject(self.gone())

    def _bury_queued(self) -> None:
        for letter in self.mailbox.close():
            self._bury(letter)
        self._fail_deferred(None)

    def _fail_deferred(self, cause: AccelError | None) -> None:
        """Fail the asks that this instance meant to answer later: it no longer can."""
        deferred, self._deferred = self._deferred, set()
        for letter in deferred:
            self._answer_failure(letter, cause or self.gone())

    @property
    def is_idle(self) -> bool:
        """Whether it handles no message, none is queued, and it owes no answer; any thread."""
        return self.stopping or (self.mailbox.is_idle and not self._deferred)

    def sight(self) -> Sight:
        """Return what its instance shows of itself; any thread, and nothing that it raises."""
        instance = self._instance
        try:
            shown = None if instance is None else instance.sight()
        except Exception as error:  # noqa: BLE001 - the tree is drawn all the same
            return Sight(f"sight() raised {type(error).__name__}")
        return shown if isinstance(shown, Sight) else Sight()

    def gone(self) -> ActorStopped:
        """Return the error that tells an asker of the end."""
        text = f"{self.path or 'the actor system'} has stopped"
        if self.cause is not None:
            why = str(self.cause).partition("\n")[0]
            text = (
                f"{text}: {why}" if self._had_started else f"{self.path} could not be made: {why}"
            )
        error = ActorStopped(text)
        error.__cause__ = self.cause
        return error

    # --- on the event loop: life ---

    def start(self) -> None:
        """Make the first instance."""
        if self.state is State.NEW and not self.stopping and self._instantiate():
            self._had_started = True
            self.system.events.publish(events.ActorStarted(self.path))
            self._open_turn()

    def revive(self, restart: Restart) -> None:
        """Make the next instance, unless `restart` has been overtaken."""
        if self._restart is not restart or self.stopping:
            return
        self._restart = None
        if not self._instantiate():
            return
        if self._had_started:
            event: events.Event = events.ActorRestarted(
                self.path, restart.cause, restart.attempt, restart.delay_s
            )
        else:
            event = events.ActorStarted(self.path)
        self._had_started = True
        self.system.events.publish(event)
        self._open_turn()

    def fail(self, error: AccelError, *, starting: bool = False) -> None:
        """Have the supervisor decide about a failure of this actor."""
        if self.parent is None or self.stopping:
            self.terminate(error)
            return
        directive = error.directive
        if starting and directive is Directive.RESUME:
            directive = Directive.RESTART  # there is no instance to resume
        self.parent.family.supervise(self, error, directive)

    def suspend(self, restart: Restart) -> None:
        """Drop the instance and its children; messages queue until `restart` is due."""
        self.state = State.SUSPENDED
        self.cause = restart.cause
        self.restarts += 1
        self._restart = restart
        self._unwatch_all()  # first, or the new instance would hear of the old one's children
        self._fail_deferred(restart.cause)
        self.family.stop(restart.cause)
        self._hook("restarting", restart.cause)
        self.family.stop(restart.cause)  # those that the hook spawned
        self._instance = None

    def terminate(self, cause: AccelError | None) -> None:
        """Stop for good, the children first; answer whatever is queued."""
        if self.state is State.STOPPED:
            return
        self._close_door()
        self.cause = cause
        self.family.stop(cause)
        self._hook("stopped")
        self.state = State.STOPPED
        self._instance = None
        self._unwatch_all()
        self._bury_queued()
        if self.parent is not None:
            self.parent.family.remove(self)
            self.system.events.publish(events.ActorStopped(self.path, cause))
        for watcher in tuple(self._watchers):
            watcher.unwatch(self)
            if not watcher.stopping:
                watcher.notify(Terminated(self.ref, cause))

    def _instantiate(self) -> bool:
        try:
            instance = self._made()
            self.kind = type(instance).__name__
            instance.context = self._context
            self.family.strategy = instance.strategy
            self._handlers = instance.handlers
            self._instance = instance
            self.state = State.RUNNING
            instance.started()
        except BaseException as raised:
            self.state = State.SUSPENDED
            self.fail(as_accel_error(raised), starting=True)
            if isinstance(raised, KeyboardInterrupt):
                raise
            return False
        return True

    def _made(self) -> Actor:
        made: Any = self._factory()
        if not isinstance(made, Actor):
            what = discarded(made) or f"an instance of {type(made).__name__}"
            raise TypeError(f"its factory returned {what}, not an Actor")
        return made

    def _open_turn(self) -> None:
        if self.mailbox.claim():
            self.system.event_loop.call_soon(self._turn)

    def _close_door(self) -> None:
        """Take no more messages, and let a sibling have the name from now on."""
        with self.system.lock:
            self.stopping = True
            if self.parent is not None:
                self.parent.family.free(self)

    def _hook(self, hook: str, *args: AccelError) -> None:
        if self._instance is None:
            return
        try:
            getattr(self._instance, hook)(*args)
        except Exception as error:  # noqa: BLE001  (an end cannot be refused)
            self.system.events.publish(events.HookFailed(self.path, hook, error))
            events.warn_of(error, f"{hook}() of {self.path} raised")

    # --- on the event loop: death watch ---

    def watch(self, other: "Cell") -> None:
        """Be told when `other` stops; see `ActorContext.watch`."""
        if Terminated not in self._handlers:
            msg = f"{self.path} watches {other.path} but has no handler for Terminated"
            raise InvalidArgument(msg)
        if other.state is State.STOPPED:
            self.notify(Terminated(other.ref, other.cause))
        else:
            other._watchers[self] = None  # noqa: SLF001
            self._watching[other] = None

    def unwatch(self, other: "Cell") -> None:
        """Forget a watch."""
        other._watchers.pop(self, None)  # noqa: SLF001
        self._watching.pop(other, None)

    def notify(self, notice: Terminated) -> None:
        """Queue a notice of the system, even in a full mailbox."""
        self._post(Letter(notice, None), 0.0, notice=True)

    def _unwatch_all(self) -> None:
        for other in tuple(self._watching):
            self.unwatch(other)
