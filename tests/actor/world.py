"""A tree of actors that the test itself runs, over a fake clock."""

from collections.abc import Callable
from typing import Any, TypeVar

from accel_lab.actor.actor import Actor, ActorRef, handles
from accel_lab.actor.clock import FakeClock
from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.actor.supervision import Strategy
from accel_lab.actor.system import ActorSystem

R = TypeVar("R")


class Add(Message[int], frozen=True):
    """Add to the sum and answer it."""

    number: int


class Fail(Message[None], frozen=True):
    """Raise `error`."""

    error: BaseException


class Spawn(Message[ActorRef[Any]], frozen=True):
    """Spawn a child."""

    name: str
    factory: Callable[[], Actor]


class Adder(Actor):
    """Adds; fails on request; spawns on request; writes its hooks down in `diary`."""

    def __init__(self, diary: list[str] | None = None) -> None:
        self.diary = [] if diary is None else diary
        self.sum = 0

    def note(self, what: str) -> None:
        self.diary.append(f"{self.context.self_ref.name} {what}")

    def started(self) -> None:
        self.note("started")

    def restarting(self, cause: BaseException) -> None:
        del cause
        self.note("restarting")

    def stopped(self) -> None:
        self.note("stopped")

    @handles(Add)
    def add(self, message: Add) -> int:
        self.sum += message.number
        return self.sum

    @handles(Fail)
    def fail(self, message: Fail) -> None:
        raise message.error

    @handles(Spawn)
    def spawn(self, message: Spawn) -> ActorRef[Any]:
        return self.context.spawn(message.factory, name=message.name)


class World:
    """A system without a thread."""

    def __init__(self, strategy: Strategy | None = None) -> None:
        self.clock = FakeClock()
        self.escaped: list[BaseException] = []
        self.event_loop = EventLoop("world", self.clock, on_error=self.escaped.append)
        self.system = ActorSystem("world", event_loop=self.event_loop, strategy=strategy)
        self.diary: list[str] = []

    def adder(self, name: str = "a", capacity: int = 1024) -> ActorRef[Adder]:
        return self.system.spawn(lambda: Adder(self.diary), name=name, capacity=capacity)

    def child(self, parent: ActorRef[Any], name: str) -> ActorRef[Any]:
        return self.ask(parent, Spawn(name, lambda: Adder(self.diary)))

    def run(self, after_s: float = 0.0) -> None:
        if after_s:
            self.clock.advance(after_s)
        self.event_loop.run_pending()

    def ask(self, ref: ActorRef[Any], message: Message[R]) -> R:
        """Ask, run everything that is due, and return the answer or raise it."""
        reply: Reply[R] = ref.ask(message)
        self.run()
        return reply.result(0.0)

    def error(self, ref: ActorRef[Any], message: Message[Any]) -> BaseException | None:
        reply = ref.ask(message)
        self.run()
        assert reply.done
        return reply.error

    def close(self) -> None:
        self.system.shutdown()
        self.event_loop.stop()
        assert self.escaped == []
