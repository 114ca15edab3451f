"""Particles follow Newton: a reference in NumPy, and what collisions conserve."""

import math
from typing import Any

import numpy as np
import pytest

from accel_lab import Device
from accel_lab.blueprints.realtime import (
    Describe,
    Measure,
    ParticleSystemActor,
    Picture,
    SetBounce,
    SetDrag,
    SetGravity,
    Step,
)
from accel_lab.errors import InvalidArgument


def crowd(count: int, *, seed: int = 0, speed: float = 1.0) -> tuple[Any, Any]:
    """Return discs on a square grid in the unit box, with random velocities."""
    side = math.isqrt(count)
    places = np.stack(np.meshgrid(*[np.arange(side)] * 2), axis=-1).reshape(-1, 2)
    x = (places + 0.5) / side
    v = speed * np.random.default_rng(seed).normal(size=x.shape)
    return x.astype("float32"), v.astype("float32")


def of(spawn: Any, device: Device, x: Any, v: Any, **options: Any) -> Any:
    put = device.put(x), device.put(v)
    return spawn(lambda: ParticleSystemActor(device, *put, **options))


def reference(x: Any, v: Any, steps: int, *, radius: float, dt: float, k: float, c: float) -> Any:
    """Every pair, in float64; in the box far from its walls, or with walls of bounce 1."""
    x, v = x.astype(float), v.astype(float)

    def forces() -> Any:
        apart = x[:, None] - x[None]
        distance = np.linalg.norm(apart, axis=-1)
        np.fill_diagonal(distance, np.inf)
        normal = apart / distance[..., None]
        closing = ((v[:, None] - v[None]) * normal).sum(axis=-1)
        push = np.where(distance < 2 * radius, k * (2 * radius - distance) - c * closing, 0)
        return (push[..., None] * normal).sum(axis=1) + np.array([0, -1])

    a = forces()
    for _ in range(steps):
        v += 0.5 * dt * a
        x += dt * v
        for wall, inward in ((radius, 1), (1 - radius, -1)):
            out = (x - wall) * inward < 0
            x, v = np.where(out, 2 * wall - x, x), np.where(out, -v, v)
        a = forces()
        v += 0.5 * dt * a
    return x, v


@pytest.mark.parametrize("friction", [0.0, 5.0])
def test_every_disc_moves_as_if_each_pair_were_looked_at(
    spawn: Any, device: Device, friction: float
) -> None:
    x, v = crowd(100)
    options = {"radius": 0.045, "dt": 1e-3, "stiffness": 2000.0, "friction": friction}
    discs = of(spawn, device, x, v, **options)
    discs.ask(Step(40)).result()
    got = discs.ask(Measure()).result()
    x, v = reference(x, v, 40, radius=0.045, dt=1e-3, k=2000.0, c=friction)
    kinetic, momentum = 0.5 * (v * v).sum(), v.sum(axis=0)
    np.testing.assert_allclose(got[0], kinetic, rtol=1e-3)
    np.testing.assert_allclose(got[2:], momentum, atol=2e-2)


def test_collisions_keep_momentum_and_energy(spawn: Any, device: Device) -> None:
    x, v = crowd(144, speed=0.2)
    x = 0.45 + 0.1 * x  # in the middle of the box: no wall is reached
    discs = of(spawn, device, x, v, radius=0.004, dt=5e-4, gravity=(0.0, 0.0), stiffness=1e4)
    before = discs.ask(Measure()).result()
    discs.ask(Step(400)).result()
    after = discs.ask(Measure()).result()
    assert abs(after[0] - before[0]) > 0 or after[1] > 0, "they collided"
    np.testing.assert_allclose(after[2:], before[2:], atol=2e-4)
    np.testing.assert_allclose(after[:2].sum(), before[:2].sum(), rtol=5e-3)


def test_a_gas_in_a_box_keeps_its_energy_for_thousands_of_steps(spawn: Any, device: Device) -> None:
    x, v = crowd(100, speed=0.3)
    discs = of(spawn, device, x, v, radius=0.03, dt=1e-3)
    before = discs.ask(Measure()).result()[:2].sum()
    discs.ask(Step(1200)).result()
    assert discs.ask(Measure()).result()[:2].sum() == pytest.approx(before, rel=0.01)


@pytest.mark.slow
def test_it_keeps_it_for_ten_thousand(spawn: Any, device: Device) -> None:
    x, v = crowd(100, speed=0.3)
    discs = of(spawn, device, x, v, radius=0.03, dt=1e-3)
    before = discs.ask(Measure()).result()[:2].sum()
    discs.ask(Step(10_000)).result()
    assert discs.ask(Measure()).result()[:2].sum() == pytest.approx(before, rel=0.03)


def test_one_disc_falls_by_half_g_t_squared_and_drag_ends_it(spawn: Any, device: Device) -> None:
    x, v = np.array([[0.5, 0.9]], "float32"), np.zeros((1, 2), "float32")
    disc = of(spawn, device, x, v, radius=0.01, dt=1e-3, gravity=(0.0, -2.0))
    disc.ask(Step(500)).result()
    _, potential, _, momentum = disc.ask(Measure()).result()
    assert momentum == pytest.approx(-1.0, rel=1e-4)
    assert potential == pytest.approx(2 * (0.9 - 0.25), rel=1e-4)
    slow = of(spawn, device, x, v, radius=0.01, dt=1e-3, gravity=(0.0, -2.0), drag=50.0)
    slow.ask(Step(400)).result()
    assert slow.ask(Measure()).result()[3] == pytest.approx(-2 / 50, rel=0.03)


def test_walls_throw_back_with_their_share_and_let_nobody_out(spawn: Any, device: Device) -> None:
    x, v = crowd(16, speed=30.0)
    discs = of(spawn, device, x, v, radius=0.02, dt=1e-3, gravity=(0.0, 0.0), stiffness=0.0)
    energy = discs.ask(Measure()).result()[0]
    discs.ask(Step(100)).result()
    assert discs.ask(Measure()).result()[0] == pytest.approx(energy, rel=1e-4)
    discs.ask(SetBounce(0.5)).result()
    discs.ask(Step(100)).result()
    assert discs.ask(Measure()).result()[0] < 0.1 * energy
    discs.ask(SetGravity(0.0, -1.0)).result()
    discs.ask(Step(500)).result()
    assert 0.019 * 16 < discs.ask(Measure()).result()[1] < 0.981 * 16


def test_the_picture_has_a_disc_where_one_is(spawn: Any, device: Device) -> None:
    x = np.array([[0.25, 0.75]], "float32")
    disc = of(spawn, device, x, np.zeros_like(x), radius=0.1, pixels=(40, 60))
    picture = disc.ask(Picture()).result()
    assert picture.shape == (40, 60, 3)
    lit = np.argwhere(picture.max(axis=-1) > 60)
    assert lit.mean(axis=0) == pytest.approx([9.5, 14.5], abs=0.3), "up is up"
    assert len(lit) == pytest.approx(math.pi * 0.01 * 40 * 60, rel=0.1)


def test_what_can_be_set_is_described_and_mistakes_are_refused(spawn: Any, device: Device) -> None:
    x, v = crowd(4)
    discs = of(spawn, device, x, v, radius=0.01)
    discs.ask(SetDrag(0.25)).result()
    discs.ask(Step(3)).result()
    about = discs.ask(Describe()).result()
    assert (about.steps, about.size, about.device) == (3, (512, 512), device)
    drag = next(one for one in about.controls if one.name == "drag")
    assert drag.value == 0.25
    discs.ask(drag.message(1.5)).result()
    assert discs.ask(Describe()).result().controls[2].value == 1.5
    for message, text in (
        (SetDrag(-1.0), "SetDrag: rate must be a number from 0, not -1"),
        (SetBounce(1.5), "from 0 up to 1, not 1.5"),
        (SetGravity(math.nan, 0.0), "a finite number, not nan"),
        (Step(0), "Step: steps must be an int from 1"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            discs.ask(message).result()
    put = device.put(x)
    for options, text in (
        ({"radius": 0.6}, "box must be a number above 1.2"),
        ({"radius": 0.1, "box": (1.0, 1.0, 1.0)}, "box must be 2 numbers"),
        ({"radius": 0.1, "gravity": -1.0}, "gravity must be 2 numbers, not -1"),
        ({"radius": 0.1, "pixels": 64}, "pixels must be height and width, not 64"),
        ({"radius": 0.1, "pixels": (64, 0)}, "pixels must be an int from 1"),
        ({"radius": 0.1, "dt": 0.1}, "dt must be at most 0.0014 for a stiffness of 10000"),
        ({"radius": 0.1, "velocities": device.put(v[:2])}, r"velocities must be .*\[4, 2\]"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            ParticleSystemActor(device, put, **options)
