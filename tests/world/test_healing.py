"""What becomes of a world, and of what it is at, when a rank is lost."""

import gc
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.events.collectives import (
    CollectiveEnded,
    WorldBroken,
    WorldFormed,
    WorldGivenUp,
)
from accel_lab.errors import (
    AccelError,
    Cancelled,
    CircuitOpen,
    ContextLost,
    InvalidArgument,
    SystemClosed,
)
from accel_lab.libraries.collective import CollectiveAborted, CommunicatorLost
from accel_lab.world.sharded import Sharded
from accel_lab.world.world import World
from tests.held import NOTHING, held

WAIT = 60
HELD_S = 0.3


@pytest.fixture(scope="module")
def opened() -> Iterator[System]:
    # A short memory of losses: a device that is lost again and again starts at once.
    with System("host", 3, max_restarts=1000, within_s=0.2) as system:
        yield system


@pytest.fixture
def lab(opened: System) -> System:
    opened.ready()
    return opened


def ones(world: World, elements: int = 3) -> list[Any]:
    return [device.put(np.ones(elements)) for device in world.devices]


def works(world: World) -> None:
    """See that it does, with a new communicator if need be."""
    assert world.ready(WAIT).all_reduce(ones(world)).get()[0] == world.size


def failure(made: Sharded) -> AccelError:
    with pytest.raises(AccelError) as caught:
        made.result(WAIT)
    return caught.value


def kill(lab: System, name: str) -> None:
    """End the process of a device's context from outside."""
    device = next(node for node in lab.tree().children if node.name == name)
    pid = device.children[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def stay(seconds: float) -> None:
    time.sleep(seconds)


def test_a_rank_that_is_lost_costs_what_it_was_at_and_the_world_heals(lab: System) -> None:
    world = lab.world(name="healing").ready()
    victim = world.devices[1]
    busy = victim.run(stay, WAIT)  # so that the others wait for it
    reply = world.all_reduce(ones(world))
    kill(lab, victim.name)
    error = failure(reply)
    assert isinstance(error, CollectiveAborted)
    assert (error.rank, error.device) == (1, victim.name)
    with pytest.raises(ContextLost):
        busy.result(WAIT)
    works(world)
    assert world.epoch == 2
    formed = [one for one in lab.events.history(WorldFormed) if one.world == "healing"]
    (broken,) = [one for one in lab.events.history(WorldBroken) if one.world == "healing"]
    assert [one.epoch for one in formed] == [1, 2]
    assert formed[1].devices == ("cpu0", "cpu1", "cpu2")
    assert "cpu1 lost its context" in broken.reason
    assert lab.events.history(CollectiveEnded)[-1].failure == ""
    assert world.devices[0].generation != victim.generation, "the others were not replaced"


def test_a_rank_that_is_lost_while_nothing_is_done_is_seen_at_once(lab: System) -> None:
    world = lab.world().ready()
    with pytest.raises(ContextLost):
        lab.inject("kill", world.devices[2]).result(WAIT)
    until = time.monotonic() + WAIT
    while world.epoch < 2:  # nobody asks anything of it
        assert time.monotonic() < until
        time.sleep(0.005)
    works(world)
    assert world.epoch == 2


def test_who_is_late_is_named_when_the_time_is_over(lab: System) -> None:
    world = lab.world().ready()
    held_up = world.devices[2].run(stay, HELD_S * 3)
    error = failure(world.all_reduce(ones(world), timeout_s=HELD_S))
    assert isinstance(error, CollectiveAborted)
    assert error.missing == (2,)
    assert "rank 2 on cpu2 had not begun" in str(error)
    held_up.result(WAIT)
    works(world)
    assert world.epoch == 2


def test_who_arrives_last_is_told(lab: System) -> None:
    world = lab.world().ready()
    world.devices[1].run(stay, HELD_S)
    flying = world.all_reduce(ones(world))
    until = time.monotonic() + WAIT
    while not any(flight.missing == (1,) for flight in list(world.in_flight.values())):
        assert time.monotonic() < until
    flying.result(WAIT)
    waited = lab.events.history(CollectiveEnded)[-1].waited_s
    assert waited.index(max(waited)) == 1


def test_what_is_cancelled_is_cancelled_on_every_rank(lab: System) -> None:
    world = lab.world().ready()
    blocked = world.devices[0].run(stay, HELD_S)
    flying = world.all_reduce(ones(world))
    flying.refs[1].cancel()
    assert isinstance(failure(flying), Cancelled)
    blocked.result(WAIT)
    works(world)


def test_an_operand_that_was_never_made_costs_no_communicator(lab: System) -> None:
    world = lab.world().ready()
    bad = world.devices[0].run(lambda: 1 / 0)
    good = ones(world)
    with pytest.raises(AccelError):
        bad.result(WAIT)
    with pytest.raises(AccelError):
        world.all_reduce([bad, *good[1:]]).result(WAIT)
    works(world)
    assert world.epoch == 1


def test_a_world_that_shrinks_goes_on_without_the_lost_rank(lab: System) -> None:
    world = lab.world(on_loss="shrink").ready()
    before = world.replicate(np.ones(3))
    lab.inject("kill", world.devices[0])
    until = time.monotonic() + WAIT
    while world.epoch < 2:
        assert time.monotonic() < until
        time.sleep(0.005)
    assert [device.name for device in world.devices] == ["cpu1", "cpu2"]
    assert world.all_reduce(ones(world)).get()[0] == 2
    with pytest.raises(InvalidArgument, match="a handle on each of cpu1, cpu2"):
        world.all_reduce(before)


def test_a_world_that_cannot_be_formed_says_why_and_tries_again_when_asked() -> None:
    with System("host", 2, max_restarts=0) as lab:
        world = lab.world().ready()
        lab.inject("kill", 1)
        given_up = lab.events.wait_for(WorldGivenUp, timeout_s=WAIT)
        assert "cpu1" in given_up.reason
        with pytest.raises(CircuitOpen):
            world.barrier()
        lab.devices[1].reset()
        works(world)


def test_a_world_that_is_closed_or_forgotten_leaves_nothing(lab: System) -> None:
    world = lab.world().ready()
    works(world)
    world.close()
    world.close()
    with pytest.raises(SystemClosed):
        world.barrier()
    other = lab.world().ready()
    number = other._communicator._comm
    del other
    gc.collect()
    parts = {d: _barrier(number) for d in lab.devices}
    with pytest.raises(CollectiveAborted, match=CommunicatorLost.__name__):
        lab.group(parts).result(WAIT)


def _barrier(number: int) -> Any:
    from accel_lab.libraries.collective import Barrier

    return Barrier(number)


def test_a_system_that_closes_while_its_world_forms_leaves_no_thread() -> None:
    before = held()
    for _ in range(3):
        with System("host", 2) as lab:
            world = lab.world()
        with pytest.raises(AccelError):
            world.barrier()
    until = time.monotonic() + WAIT
    while before.more() != NOTHING:
        assert time.monotonic() < until, before.more()
        time.sleep(0.01)


def test_what_was_answered_does_not_count_as_unfinished(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(6):
        with System("host", 2) as lab:
            world = lab.world()
            x, out = ones(world, 1 << 16), world.own(ones(world, 1 << 16))
            for _ in range(5):
                world.all_reduce(x, out=out).result(WAIT)
    assert "did not finish" not in capfd.readouterr().err


def test_worlds_may_share_devices(lab: System) -> None:
    whole, part = lab.world(), lab.world(lab.devices[1:])
    replies = []
    for _ in range(10):
        replies += [whole.all_reduce(ones(whole, 20_000)), part.all_reduce(ones(part, 20_000))]
    assert {made.get()[0] for made in replies} == {2.0, 3.0}
    with pytest.raises(InvalidArgument, match="cpu0 is there twice"):
        lab.world([lab.devices[0], lab.devices[0]])
    with pytest.raises(InvalidArgument, match="one device at least"):
        lab.world([])


def test_what_ends_while_it_is_being_sent_is_not_in_flight(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is told before the reply is done, so both may be seen in between."""
    world = lab.world(name="quick").ready()
    ended, returned = threading.Event(), threading.Event()

    def hold(one: CollectiveEnded) -> None:
        if one.world == "quick":
            ended.set()
            returned.wait(WAIT)

    send = world._services.groups.send

    def sent(*args: Any, **options: Any) -> Any:
        reply = send(*args, **options)
        reply.flush()
        assert ended.wait(WAIT)
        assert not reply.done
        return reply

    monkeypatch.setattr(world._services.groups, "send", sent)
    with lab.events.subscribe(hold, CollectiveEnded):
        made = world.all_reduce(ones(world))
        returned.set()
        made.result(WAIT)
    assert not world.in_flight


SEED = 20_261_127


def test_random_faults_amid_collectives_answer_everybody(lab: System) -> None:
    """Fifty of them: kills, hangs and illegal addresses of random ranks; nothing hangs."""
    world = lab.world(name="campaign").ready()
    usual = sorted(_heals(lab, world) for _ in range(3))[1]  # on this machine, busy as it is
    drawn = random.Random(SEED)
    kinds: list[Fault] = ["kill", "hang", "poison"]
    calls = itertools.cycle(
        [
            world.all_reduce,
            world.all_gather,
            world.reduce_scatter,
            world.all_to_all,
            lambda xs: world.broadcast(xs[1]),
        ]
    )
    healed = []
    for number in range(50):
        try:
            operands = ones(world, 3 * drawn.choice([1, 10_000, 100_000]))
            flying = [next(calls)(operands) for _ in range(3)]
            kind = kinds[number % 3]
            victim = drawn.choice(world.devices)
            lab.inject(kind, victim, timeout_s=0.05 if kind == "hang" else None)
            flying += [next(calls)(operands) for _ in range(2)]
        except AccelError:
            flying = []  # the fault of the round before was still to come
        for made in flying:
            try:
                made.result(WAIT)
            except AccelError:
                continue
        began = time.monotonic()
        while True:
            try:
                works(world)
                break
            except AccelError:
                assert time.monotonic() - began < WAIT
        healed.append(time.monotonic() - began)
    assert world.epoch > 30
    half = sorted(healed)[25]
    assert half < max(3, 5 * usual), f"p50 {half:.2f} s, usual {usual:.2f} s, seed {SEED}"
    assert not world.in_flight


def _heals(lab: System, world: World) -> float:
    """Return how long a world takes to work again after one kill."""
    epoch, began = world.epoch, time.monotonic()
    lab.inject("kill", world.devices[1])
    while world.epoch == epoch:
        assert time.monotonic() - began < WAIT
        time.sleep(0.005)
    works(world)
    return time.monotonic() - began
