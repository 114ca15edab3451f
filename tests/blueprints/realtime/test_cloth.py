"""Cloth keeps its distances, its momentum, and its pins; a reference in NumPy does the same."""

from typing import Any

import numpy as np
import pytest

from accel_lab import Device
from accel_lab.blueprints.realtime import (
    ClothSimulationActor,
    Measure,
    Picture,
    SetBall,
    SetBreeze,
    SetPins,
    SetPull,
    Step,
)
from accel_lab.errors import InvalidArgument

THREADS = ((0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0))


@pytest.fixture(scope="module")
def made(device: Device) -> Any:
    return lambda *args, **options: ClothSimulationActor(device, *args, **options)


def places(cloth: ClothSimulationActor) -> Any:
    return cloth.buffers["x"].get()


def loose(device: Device, rows: int, columns: int) -> Any:
    return device.put(np.zeros((rows, columns), np.uint8))


def crumpled(rows: int, columns: int, spacing: float) -> Any:
    """Return a sheet whose nodes are a little beside their places."""
    row, column = np.mgrid[:rows, :columns] * spacing
    sheet = np.stack([column, -row, np.zeros_like(row)], axis=-1)
    return sheet + np.random.default_rng(2).normal(size=sheet.shape) * spacing / 5


def reference(x: Any, pinned: Any, steps: int, *, spacing: float, dt: float, passes: int) -> Any:
    """Take one distance after the other, in float64."""
    x, before = x.astype(float), x.astype(float).copy()
    rows, columns = pinned.shape
    for _ in range(steps):
        free = (pinned == 0)[..., None]
        x, before = x + free * (x - before + dt * dt * np.array([0, -9.8, 0])), x
        for _ in range(passes):
            for dy, dx in THREADS:
                rest = spacing * np.hypot(dy, dx)
                stiffness = 0.25 if 2 in {dy, dx} else 1.0
                for colour in (0, 1):
                    for r in range(rows - dy):
                        for c in range(max(0, -dx), min(columns, columns - dx)):
                            if (r // dy if dy else c // dx) % 2 != colour:
                                continue
                            a, b = (r, c), (r + dy, c + dx)
                            share = float(pinned[a] == 0) + float(pinned[b] == 0)
                            if share:
                                apart = x[b] - x[a]
                                length = np.linalg.norm(apart)
                                by = stiffness * (length - rest) / (length * share) * apart
                                x[a] += by * (pinned[a] == 0)
                                x[b] -= by * (pinned[b] == 0)
    return x


def test_a_step_is_that_of_the_reference(made: Any, device: Device) -> None:
    start = crumpled(6, 7, 0.1)
    pinned = np.zeros((6, 7), np.uint8)
    pinned[0, ::3] = 1
    cloth = made(
        6,
        7,
        spacing=0.1,
        positions=device.put(start.astype("float32")),
        pinned=device.put(pinned),
        passes=3,
        bending=0.25,
        damping=0.0,
    )
    cloth.step(Step(12)).result()
    wanted = reference(start, pinned, 12, spacing=0.1, dt=0.01, passes=3)
    np.testing.assert_allclose(places(cloth), wanted, atol=5e-5)
    held = pinned == 1
    np.testing.assert_array_equal(places(cloth)[held], start.astype("float32")[held])


def test_a_sheet_that_flies_keeps_momentum_and_angular_momentum(made: Any, device: Device) -> None:
    start = crumpled(8, 9, 0.1).astype("float32")
    cloth = made(
        8,
        9,
        spacing=0.1,
        positions=device.put(start),
        pinned=loose(device, 8, 9),
        gravity=0.0,
        damping=0.0,
    )
    spin = np.cross([0.0, 0.3, 1.0], start - start.mean(axis=(0, 1))) + np.array([0.2, 0.1, 0.0])
    cloth.buffers["before"][:] = device.put((start - 0.01 * spin).astype("float32"))

    def moments() -> tuple[Any, Any]:
        x, v = places(cloth).astype(float), cloth.buffers["before"].get().astype(float)
        v = (x - v) / 0.01
        return v.sum(axis=(0, 1)), np.cross(x, v).sum(axis=(0, 1))

    momentum, angular = moments()
    cloth.step(Step(80)).result()
    np.testing.assert_allclose(moments()[0], momentum, atol=0.02)
    np.testing.assert_allclose(moments()[1], angular, atol=0.05 * np.abs(angular).max())
    x = places(cloth).astype(float)
    threads = np.linalg.norm(np.diff(x, axis=1), axis=-1)
    np.testing.assert_allclose(threads, 0.1, rtol=0.05)


def test_it_hangs_down_from_its_pins_at_rest(made: Any) -> None:
    cloth = made(8, 8, damping=6.0, passes=12)
    cloth.step(Step(150)).result()
    before = places(cloth)
    cloth.step(Step(20)).result()
    x = places(cloth)
    assert np.abs(x - before).max() < 2e-3, "at rest"
    np.testing.assert_allclose(x[..., 0], -x[:, ::-1, 0], atol=2e-3)
    longest, lowest, *_ = cloth.measure(Measure()).result()
    assert 1 <= longest < 1.3
    assert lowest == pytest.approx(x[..., 1].min())
    assert lowest < -0.5


@pytest.mark.slow
def test_it_stays_whole_for_ten_thousand_steps(made: Any) -> None:
    cloth = made(12, 12, damping=0.2, passes=20, wind=(2.0, 0.0, 6.0))
    for _ in range(10):
        cloth.step(Step(1000)).result()
        assert cloth.measure(Measure()).result()[0] < 2


def test_nothing_gets_into_the_ball_and_wind_blows_it_away(made: Any) -> None:
    cloth = made(12, 12, damping=1.0, passes=8)
    cloth.set_ball(SetBall(0.05, -0.1, 0.1, 0.3))
    cloth.step(Step(100)).result()
    out = np.linalg.norm(places(cloth) - np.array([0.05, -0.1, 0.1]), axis=-1)
    assert out.min() > 0.3 - 1e-5
    assert (out < 0.31).sum() > 5, "it lies on it"
    cloth.set_ball(SetBall(0, 0, 0, 0))
    cloth.set_breeze(SetBreeze(0.0, 0.0, -50.0))
    cloth.step(Step(60)).result()
    assert places(cloth)[-1, :, 2].mean() < -0.2


def test_a_cloth_with_thickness_does_not_pass_through_itself(made: Any, device: Device) -> None:
    """A strip that is folded in two halves falls flat: these stay apart."""
    row, column = np.mgrid[:16, :6] * 0.1
    half = row >= 0.75
    x = np.where(half, 1.5 - row, row)
    y = np.where(half, -0.06, 0.0)
    fold = np.stack([x, y, column], axis=-1).astype("float32")
    pins = np.zeros((16, 6), np.uint8)
    pins[0] = pins[-1] = 1
    gaps = {}
    for thickness in (None, 0.09):
        options = {"positions": device.put(fold), "pinned": device.put(pins), "gravity": 0.0}
        cloth = made(16, 6, spacing=0.1, thickness=thickness, damping=5.0, bending=0.0, **options)
        cloth.step(Step(20)).result()
        x = places(cloth).astype(float)
        gaps[thickness] = np.linalg.norm(x[2:6] - x[13:9:-1], axis=-1).min()
    assert gaps[None] < 0.07
    assert gaps[0.09] > 0.075


def test_a_cloth_that_has_flown_away_is_in_as_many_cells(made: Any, device: Device) -> None:
    """Where all of its nodes came to lie in one cell, each would be compared with all others."""
    cloth = made(33, 33, thickness=0.03)
    here = cloth.buffers["x"].get()
    fullest = []
    for way in ([0, 0, 0], [0, -900, 0], [4000, 3000, -2000], [np.nan] * 3, [1e30, 0, np.inf]):
        x = device.put((here + np.array(way)).astype("float32"))
        order, starts = (one.get() for one in cloth.cell_list(x))
        assert sorted(order.tolist()) == list(range(33 * 33))
        assert starts[0] == 0
        assert starts[-1] == 33 * 33
        fullest.append(np.diff(starts).max())
    assert max(fullest) <= 2 * fullest[0] + 2


@pytest.mark.parametrize("far", [0.0, 64.0])
def test_nodes_are_pushed_apart_as_if_each_pair_were_looked_at(
    made: Any, device: Device, far: float
) -> None:
    rng = np.random.default_rng(5)
    start = (rng.uniform(-0.3, 0.3, (7, 6, 3)) + far).astype("float32")
    options = {"spacing": 0.2, "thickness": 0.2, "gravity": 0.0, "passes": 1, "bending": 0.0}
    pinned = np.zeros((7, 6), np.uint8)
    pinned[3] = 1
    given = {"positions": device.put(start), "pinned": device.put(pinned), **options}
    cloth, through = made(7, 6, **given), made(7, 6, **given | {"thickness": None})
    cloth.step(Step()).result()
    through.step(Step()).result()
    x = places(through).astype(float).reshape(-1, 3)
    row, column = np.divmod(np.arange(42), 6)
    apart = x[:, None] - x[None]
    length = np.linalg.norm(apart, axis=-1)
    near = (abs(row[:, None] - row) <= 1) & (abs(column[:, None] - column) <= 1)
    meets = (length < 0.2) & ~near
    assert meets.sum() > 100
    by = np.where(meets, 0.25 * (0.2 - length) / np.where(length, length, 1), 0)
    moved = (by[..., None] * apart).sum(axis=1) * (pinned.reshape(-1, 1) == 0)
    atol = 2e-6 + 3e-7 * far
    np.testing.assert_allclose(places(cloth).reshape(-1, 3), x + moved, atol=atol)


def test_two_sliders_that_move_at_once_both_count(made: Any) -> None:
    """The page has controls of before the first of them was heard of."""
    cloth = made(4, 5, wind=(1.0, 2.0, 3.0))
    controls = {one.name: one for one in cloth.controls()}
    cloth.set_breeze(controls["wind x"].message(7.0))
    cloth.set_breeze(controls["wind z"].message(8.0))
    assert cloth.wind == (7.0, 2.0, 8.0)
    cloth.set_ball(SetBall(1.0, 2.0, 3.0, 0.0))
    cloth.set_ball(controls["ball"].message(0.5))
    assert cloth.ball == (1.0, 2.0, 3.0, 0.5)


def test_the_picture_shows_the_cloth_and_not_what_is_behind_it(made: Any) -> None:
    cloth = made(9, 9, pixels=(48, 64))
    picture = cloth.picture(Picture()).result()
    assert picture.shape == (48, 64, 3)
    lit = picture.max(axis=-1) > 40
    assert 0.1 < lit.mean() < 0.6
    assert lit[24, 32]
    assert not lit[0].any()
    assert len({tuple(one) for one in picture[lit]}) == 2, "two colours of one light: it is flat"


def test_mistakes_are_refused_with_what_was_expected(made: Any, device: Device) -> None:
    cloth = made(4, 5)
    calls: list[tuple[Any, str]] = [
        (lambda: made(2, 5), "rows must be an int from 3"),
        (lambda: made(4, 5, thickness=0.5), "thickness must be a number above 0 up to 0.25"),
        (lambda: made(4, 5, wind=(1.0, 2.0)), "wind must be 3 numbers"),
        (lambda: made(4, 5, pixels=(4, 5, 3)), "pixels must be height and width"),
        (lambda: made(4, 5, bending=2.0), "bending must be a number from 0 up to 1, not 2"),
        (lambda: cloth.set_pull(SetPull(float("inf"))), "acceleration must be a finite number"),
        (lambda: cloth.set_pins(SetPins(loose(device, 5, 4))), r"uint8\[4, 5\] of"),
        (lambda: cloth.set_ball(SetBall(0, 0, 0, -1)), "radius must be a number from 0"),
    ]
    for call, text in calls:
        with pytest.raises(InvalidArgument, match=text):
            call()
