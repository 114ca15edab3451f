"""The children of one actor: their names, their order, and what a failure does to them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from accel_lab.actor.actor import Actor, ActorRef
from accel_lab.actor.supervision import RestartWindow, Strategy
from accel_lab.errors import AccelError, Directive, InvalidArgument, NameTaken

if TYPE_CHECKING:
    from accel_lab.actor.cell import Cell

S = TypeVar("S", bound=Actor)


class Restart:
    """One decision to restart some siblings; a later decision about a sibling overrides it."""

    def __init__(
        self, cells: list["Cell"], cause: AccelError, attempt: int, delay_s: float
    ) -> None:
        self.cells = cells
        self.cause = cause
        self.attempt = attempt
        self.delay_s = delay_s

    def run(self) -> None:
        """Give each sibling its new instance, the oldest first."""
        for cell in self.cells:
            cell.revive(self)


class Family:
    """The children of `parent`, supervised by its strategy.

    Runs on the event loop, save `spawn`, `living` and `free`, which any thread may call.
    """

    def __init__(self, parent: "Cell") -> None:
        self.strategy: Strategy = Actor.strategy
        self._parent = parent
        self._system = parent.system
        self._members: list[Cell] = []
        self._names: dict[str, Cell] = {}
        self._unnamed = 0
        self._shared_budget: RestartWindow | None = None

    def spawn(
        self,
        factory: Callable[[], S],
        name: str | None,
        seat: Callable[[str], "Cell"],
    ) -> ActorRef[S]:
        """Give a new cell its name and place, and queue its start.

        Raises:
            NameTaken: a living child has this name.
            InvalidArgument: the name is empty or holds a slash, or the factory cannot be called.
            ActorStopped: the parent is stopping.
        """
        if not callable(factory):
            kind = type(factory).__name__
            text = f"spawn takes what makes an actor, as {kind} or lambda: {kind}(…), and calls it"
            raise InvalidArgument(f"{text}; it was given an instance of {kind}")
        with self._system.lock:
            if self._parent.stopping:
                raise self._parent.gone()
            if name is None:
                self._unnamed += 1
                kind = getattr(factory, "__name__", "actor").strip("<>").lower()
                name = f"{kind}-{self._unnamed}"
            if not name or "/" in name:
                raise InvalidArgument(f"an actor's name is not empty and holds no slash: {name!r}")
            if name in self._names:
                raise NameTaken(f"{self._parent.path or '/'} already has a child named {name!r}")
            child = self._names[name] = seat(name)
            self._members.append(child)
        self._system.event_loop.call_soon(child.start)
        return child.ref

    def living(self) -> list["Cell"]:
        """Return the children that are not stopping, in the order of their spawning."""
        with self._system.lock:
            return [child for child in self._members if not child.stopping]

    def free(self, child: "Cell") -> None:
        """Let another child have the name of `child` from now on."""
        with self._system.lock:
            if self._names.get(child.name) is child:
                del self._names[child.name]

    def remove(self, child: "Cell") -> None:
        """Forget a child that has stopped."""
        with self._system.lock:
            self._members.remove(child)

    def members(self) -> list["Cell"]:
        """Return all children, those that are stopping included."""
        with self._system.lock:
            return list(self._members)

    def members_unlocked(self) -> list["Cell"]:
        """Return all children where there is no other thread."""
        return list(self._members)

    def stop(self, cause: AccelError | None) -> None:
        """Stop all children, the youngest first, and forget their failures."""
        for child in reversed(self.members()):
            child.terminate(cause)
        self._shared_budget = None

    def forgive(self) -> None:
        """Begin the children's shared budget anew."""
        self._shared_budget = None

    def supervise(self, child: "Cell", error: AccelError, directive: Directive) -> None:
        """Do to `child` what its error's directive and the strategy say."""
        siblings = self.living()
        if child not in siblings:  # asked to stop by another thread a moment ago
            child.terminate(error)
            return
        if directive in (Directive.RESTART, Directive.REPLACE):
            asked_for = directive is Directive.REPLACE
            attempt = 0 if asked_for else self._budget(child).record()
            if attempt is not None:
                delay_s = self.strategy.backoff.delay_s(attempt)
                cells = list(self.strategy.affected(siblings, child))
                self._restart(Restart(cells, error, attempt, delay_s))
                return
            directive = self.strategy.exhausted
        if directive is Directive.RESUME:
            return
        if directive is Directive.ESCALATE and self._parent.parent is not None:
            self._parent.fail(error)
        child.terminate(error)  # no effect where the escalation has already stopped it

    def _restart(self, restart: Restart) -> None:
        for cell in reversed(restart.cells):
            cell.suspend(restart)
        if restart.delay_s > 0:
            self._system.event_loop.call_later(restart.delay_s, restart.run)
        else:
            self._system.event_loop.call_soon(restart.run)

    def _budget(self, child: "Cell") -> RestartWindow:
        clock = self._system.event_loop.clock
        if self.strategy.shares_budget:
            self._shared_budget = self._shared_budget or self.strategy.window(clock)
            return self._shared_budget
        child.budget = child.budget or self.strategy.window(clock)
        return child.budget
