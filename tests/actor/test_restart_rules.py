"""Who restarts, in which order, and until when: the actors against a plain model."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from accel_lab.actor import events
from accel_lab.actor.actor import ActorRef
from accel_lab.actor.supervision import AllForOne, Backoff, OneForOne, RestForOne, Strategy
from accel_lab.errors import ActorStopped, Directive, LibraryError
from tests.actor.world import Add, Adder, Fail, World

BACKOFF = Backoff(first_s=0.0, base_s=1.0, factor=2.0, cap_s=4.0, jitter=0.0)
DELAYS = [0.0, 1.0, 2.0, 4.0, 4.0, 4.0]


@dataclass
class Model:
    """The rules in a few lines, written without looking at the actors."""

    strategy: str
    max_restarts: int
    within_s: int
    escalates: bool
    alive: list[str]
    now: float = 0.0
    restarts: dict[str, list[float]] = field(default_factory=dict)

    def fail(self, name: str) -> tuple[list[str], float, list[str]]:
        """Return what happens at once, after how long the rest, and that rest."""
        budget = self.restarts.setdefault(name if self.strategy == "one" else "*", [])
        recent = [time for time in budget if self.now - time < self.within_s]
        if len(recent) >= self.max_restarts:
            if self.escalates:
                gone = [f"{child} stopped" for child in reversed(self.alive)]
                self.alive = []
                return [*gone, "top restarting", "top started"], 0.0, []
            self.alive.remove(name)
            return [f"{name} stopped"], 0.0, []
        budget.append(self.now)
        first = {"one": self.alive.index(name), "all": 0, "rest": self.alive.index(name)}
        last = self.alive.index(name) + 1 if self.strategy == "one" else None
        hit = self.alive[first[self.strategy] : last]
        down = [f"{child} restarting" for child in reversed(hit)]
        return down, DELAYS[len(recent)], [f"{child} started" for child in hit]


def build(kind: str, max_restarts: int, within_s: int, *, escalates: bool) -> Strategy:
    kinds: dict[str, type[OneForOne | AllForOne | RestForOne]] = {
        "one": OneForOne,
        "all": AllForOne,
        "rest": RestForOne,
    }
    factory = kinds[kind]
    return factory(
        max_restarts=max_restarts,
        within_s=float(within_s),
        backoff=BACKOFF,
        exhausted=Directive.ESCALATE if escalates else Directive.STOP,
    )


def family(world: World, strategy: Strategy, names: str) -> tuple[ActorRef[Any], list[Any]]:
    class Top(Adder):
        pass

    Top.strategy = strategy
    top = world.system.spawn(lambda: Top(world.diary), name="top")
    children = [world.child(top, name) for name in names]
    world.diary.clear()
    return top, children


@given(
    kind=st.sampled_from(["one", "all", "rest"]),
    max_restarts=st.integers(0, 4),
    within_s=st.integers(3, 30),
    escalates=st.booleans(),
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=15),
)
def test_restarts_follow_the_model(
    kind: str, max_restarts: int, within_s: int, *, escalates: bool, steps: list[tuple[int, int]]
) -> None:
    world = World()
    strategy = build(kind, max_restarts, within_s, escalates=escalates)
    top, children = family(world, strategy, "abcd")
    model = Model(kind, max_restarts, within_s, escalates, alive=list("abcd"))
    for index, pause in steps:
        name, child = "abcd"[index], children[index]
        error = LibraryError(name)
        if name not in model.alive:
            event("the dead are asked")
            assert isinstance(world.error(child, Fail(error)), ActorStopped)
            continue
        at_once, delay_s, later = model.fail(name)
        event(at_once[-1].split()[1])
        waiting = child.ask(Fail(error)), child.ask(Add(1))
        world.run()
        assert waiting[0].error is error
        if delay_s:
            assert world.diary == at_once
            world.run(delay_s / 2)
            assert world.diary == at_once
            world.run(delay_s / 2)
            model.now += delay_s
        assert world.diary == at_once + later
        if name in model.alive:
            assert waiting[1].result(0) == 1  # a new instance took the queued message
        else:
            assert isinstance(waiting[1].error, ActorStopped)
        world.diary.clear()
        world.run(float(pause))
        model.now += pause
        assert [ref.name for ref in children if ref.is_alive] == model.alive
        if not model.alive:
            break
    assert top.is_alive
    world.close()


def test_sibling_that_fails_while_its_group_backs_off_fails_again_later() -> None:
    world = World()
    _, (a, b) = family(world, build("all", 3, 60, escalates=False), "ab")
    world.error(a, Fail(LibraryError("0")))
    world.diary.clear()
    first, second = a.ask(Fail(LibraryError("1"))), b.ask(Fail(LibraryError("2")))
    world.run()
    assert (first.done, second.done) == (True, False)  # b was taken down with a
    world.run(1.0)
    assert second.done
    world.run(2.0)
    assert world.diary == ["b restarting", "a restarting", "a started", "b started"] * 2
    attempts = [e.attempt for e in world.system.events.history(events.ActorRestarted)]
    assert attempts == [1, 1, 2, 2, 3, 3]
    world.close()


def test_sibling_whose_start_fails_during_a_group_restart_restarts_the_group_again() -> None:
    world = World()
    trouble = [LibraryError("once")]

    class Fragile(Adder):
        def started(self) -> None:
            super().started()
            if self.diary.count("b started") == 2:
                raise trouble[0]

    class Top(Adder):
        strategy = build("all", 3, 60, escalates=False)

        def started(self) -> None:
            for name, kind in (("a", Adder), ("b", Fragile), ("c", Adder)):
                self.context.spawn(partial(kind, world.diary), name=name)

    top = world.system.spawn(lambda: Top(world.diary), name="top")
    world.run()
    world.diary.clear()
    world.diary.append("b started")  # the first of the two that Fragile counts
    a = next(cell for cell in top._cell.family.members() if cell.name == "a").ref
    world.error(a, Fail(LibraryError("first")))
    world.run(1.0)
    assert world.diary[1:] == [
        *("c restarting", "b restarting", "a restarting"),
        *("a started", "b started"),
        *("b restarting", "a restarting"),  # c had no instance yet
        *("a started", "b started", "c started"),
    ]
    world.close()


def test_child_stopped_during_back_off_stays_stopped() -> None:
    world = World()
    _, (a, b) = family(world, build("all", 3, 60, escalates=False), "ab")
    for number in range(2):
        world.error(a, Fail(LibraryError(str(number))))
    b.stop()
    world.run()
    world.diary.clear()
    world.run(1.0)
    assert world.diary == ["a started"]
    assert not b.is_alive
    world.close()
