"""A simulation that loses its context goes on as if nothing had been, bit for bit."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.blueprints.realtime import (
    AddSource,
    ClothSimulationActor,
    Describe,
    FluidSimulationActor,
    Measure,
    ParticleSystemActor,
    Picture,
    SetBall,
    Simulation,
    Splash,
    Step,
)
from accel_lab.errors import ContextLost, StaleRef


@pytest.fixture
def lab(backend: str) -> Iterator[System]:
    with System(backend, devices=1) as system:
        yield system
        system.check()


def particles(device: Device) -> Simulation:
    x = np.random.default_rng(1).random((200, 2)).astype("float32") * 0.9 + 0.05
    return ParticleSystemActor(device, device.put(x), radius=0.02, pixels=(50, 50))


def fluid(device: Device) -> Simulation:
    made = FluidSimulationActor(device, 24, 32, lift=20, eddies=1, sweeps=10)
    made.add_source(AddSource(Splash(16, 20, 4, dye=(5, 2, 1))))
    return made


def cloth(device: Device) -> Simulation:
    made = ClothSimulationActor(device, 9, 9, thickness=0.12, passes=2, pixels=(50, 50))
    made.set_ball(SetBall(0.1, -0.2, 0.1, 0.25))
    return made


@pytest.mark.parametrize("make", [particles, fluid, cloth], ids=lambda one: one.__name__)
def test_a_kill_between_and_amid_steps_changes_nothing(
    lab: System, make: Callable[[Device], Simulation]
) -> None:
    (device,) = lab.devices

    def run(*, killed: bool) -> tuple[Any, Any]:
        actor = lab.spawn(lambda: make(device))
        for i in range(3):
            going = actor.ask(Step(45))
            actor.ask(Describe()).result()  # by then all launches are sent
            if i == 0:
                going.result()
            if killed and i < 2:
                with pytest.raises(ContextLost):
                    lab.inject("kill").result()
            going.result()
        found = actor.ask(Picture()).result(), actor.ask(Measure()).result()
        actor.stop()
        return found

    picture, measures = run(killed=False)
    assert np.isfinite(measures).all()
    same_picture, same_measures = run(killed=True)
    assert device.generation == 3
    np.testing.assert_array_equal(same_measures, measures)
    np.testing.assert_array_equal(same_picture, picture)


def test_what_was_before_a_checkpoint_is_not_run_again(lab: System) -> None:
    (device,) = lab.devices
    made = particles(device)
    made.keep_every = 16  # type: ignore[misc]
    actor = lab.spawn(lambda: made)
    actor.ask(Step(16 * 8 + 2)).result()
    lab.flush()
    why = made.buffers["x"].durability.why
    assert made.buffers["x"].durability in {"replayable", "checkpointed"}
    assert int("".join(c for c in why if c.isdigit()) or 0) < 100, why


def test_where_nothing_is_rebuilt_it_runs_until_the_fault(backend: str) -> None:
    with System(backend, devices=1, recover="stale") as lab:
        (device,) = lab.devices
        actor = lab.spawn(lambda: particles(device))
        actor.ask(Step(ParticleSystemActor.keep_every + 1)).result()
        with pytest.raises(ContextLost):
            lab.inject("kill").result()
        with pytest.raises(StaleRef):
            actor.ask(Step()).result()
