"""Answers that an actor gives later, what it shows of itself, and calls that count as its own."""

from typing import Any

import pytest

from accel_lab.actor.actor import Actor, Sight, handles
from accel_lab.actor.letter import Promise
from accel_lab.actor.message import Message
from accel_lab.errors import ActorFailed, Cancelled, InvalidArgument
from tests.actor.world import World


class Later(Message[int], frozen=True):
    """Answer when told to."""


class Keeper(Actor):
    """Keeps promises; `promised` and `withdrawn` are the test's."""

    def __init__(self, promised: list[Promise[int]], withdrawn: list[Promise[int]]) -> None:
        self.promised, self.withdrawn = promised, withdrawn

    def sight(self) -> Sight:
        return Sight(f"{len(self.promised)} promised", waiting=2, in_flight=3)

    @handles(Later)
    def later(self, message: Later) -> Promise[int]:
        del message
        promise: Promise[int] = Promise(self.context.event_loop, self.take_back)
        self.promised.append(promise)
        return promise

    def take_back(self, promise: Promise[int]) -> None:
        self.withdrawn.append(promise)
        promise.reject(Cancelled("taken back"))


class Kept:
    """A keeper, and what it has."""

    def __init__(self, world: World) -> None:
        self.promised: list[Promise[int]] = []
        self.withdrawn: list[Promise[int]] = []
        self.made: list[Keeper] = []

        def make() -> Keeper:
            self.made.append(Keeper(self.promised, self.withdrawn))
            return self.made[-1]

        self.ref = world.system.spawn(make, name="keeper")


@pytest.fixture
def kept(world: World) -> Kept:
    return Kept(world)


def test_a_promise_answers_the_ask_when_it_is_kept(world: World, kept: Kept) -> None:
    reply = kept.ref.ask(Later())
    world.run()
    assert not reply.done
    assert not kept.ref.is_idle, "it owes an answer"
    kept.promised[0].resolve(7)
    assert reply.result(0) == 7
    assert kept.ref.is_idle


def test_cancelling_the_ask_has_the_actor_take_it_back(world: World, kept: Kept) -> None:
    reply = kept.ref.ask(Later())
    world.run()
    reply.cancel()
    reply.cancel()
    assert not reply.done, "the actor says so, in its own turn"
    world.run()
    assert kept.withdrawn == kept.promised
    with pytest.raises(Cancelled, match="taken back"):
        reply.result(0)


def test_one_that_is_cancelled_too_late_is_kept(world: World, kept: Kept) -> None:
    reply = kept.ref.ask(Later())
    world.run()
    reply.cancel()
    kept.promised[0].resolve(1)
    world.run()
    assert reply.result(0) == 1
    assert kept.withdrawn == []


def test_a_restart_breaks_promises(world: World, kept: Kept) -> None:
    reply = kept.ref.ask(Later())
    world.run()
    actor = kept.made[0]
    actor.context.run(actor, _divide, 1, 0)
    with pytest.raises(ActorFailed, match="ZeroDivisionError"):
        reply.result(0)
    world.run()
    assert (kept.ref.restarts, len(kept.made)) == (1, 2)
    kept.promised[0].resolve(5)
    actor.context.run(actor, kept.promised.clear)
    assert kept.promised, "what is meant for the instance before is not called"


def test_an_error_in_a_call_that_nobody_waits_for_restarts_it(world: World, kept: Kept) -> None:
    def refuse() -> None:
        raise InvalidArgument("a handler's asker would be told, and this has none")

    world.run()
    actor = kept.made[0]
    actor.context.run(actor, refuse)
    world.run()
    assert kept.ref.restarts == 1
    assert isinstance(kept.ref.cause, ActorFailed)
    assert isinstance(kept.ref.cause.__cause__, InvalidArgument)


def test_an_actor_says_what_the_tree_shows_of_it(world: World, kept: Kept) -> None:
    assert kept.ref.sight == Sight()
    world.run()
    assert kept.ref.sight == Sight("0 promised", 2, 3)


def test_what_an_actor_shows_never_breaks_the_tree(world: World) -> None:
    class Odd(Actor):
        def sight(self) -> Sight:
            raise KeyError("sight")

    class Other(Actor):
        def sight(self) -> Any:
            return "what its author meant otherwise"

    refs = [world.system.spawn(one) for one in (Odd, Other)]
    world.run()
    assert [one.sight for one in refs] == [Sight("sight() raised KeyError"), Sight()]


def _divide(one: int, other: int) -> Any:
    return one / other
