"""A fluid has no divergence, and is what NumPy and SciPy make of the same equations."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import map_coordinates
from scipy.sparse import lil_matrix
from scipy.sparse.linalg import spsolve

from accel_lab import Device
from accel_lab.blueprints.realtime import (
    AddSource,
    FluidSimulationActor,
    Measure,
    Picture,
    SetObstacles,
    SetViscosity,
    SetWind,
    Show,
    Splash,
    Step,
)
from accel_lab.errors import InvalidArgument

WIND = 3.0


class Reference:
    """The same fluid, a whole array at a time in float64; the pressure is solved for exactly."""

    def __init__(self, solid: Any, *, is_open: bool, dt: float) -> None:
        self.solid, self.is_open, self.dt = solid.astype(bool), is_open, dt
        h, w = solid.shape
        self.u, self.v, self.dye = np.zeros((h, w + 1)), np.zeros((h + 1, w)), np.zeros((h, w, 3))
        fluid = ~self.solid
        self.free_u = np.zeros((h, w + 1), bool)
        self.free_u[:, 1:-1] = fluid[:, 1:] & fluid[:, :-1]
        self.free_v = np.zeros((h + 1, w), bool)
        self.free_v[1:-1] = fluid[1:] & fluid[:-1]
        self.given = np.zeros((h, w + 1))
        if is_open:
            self.free_u[:, -1] = fluid[:, -1]
            self.given[:, 0] = WIND * fluid[:, 0]
            self.u += WIND

    def velocity(self, y: Any, x: Any) -> tuple[Any, Any]:
        return self.sample(self.v, y, x - 0.5), self.sample(self.u, y - 0.5, x)

    @staticmethod
    def sample(field: Any, y: Any, x: Any) -> Any:
        y, x = np.clip(y, 0, field.shape[0] - 1), np.clip(x, 0, field.shape[1] - 1)
        return map_coordinates(field, [y, x], order=1, mode="nearest")

    def origin(self, shape: tuple[int, int], y: float, x: float) -> tuple[Any, Any]:
        at = np.mgrid[: shape[0], : shape[1]].astype(float) + np.array([y, x])[:, None, None]
        vy, vx = self.velocity(*at)
        vy, vx = self.velocity(at[0] - 0.5 * self.dt * vy, at[1] - 0.5 * self.dt * vx)
        return at[0] - self.dt * vy, at[1] - self.dt * vx

    def advect(self) -> None:
        y, x = self.origin(self.u.shape, 0.5, 0)
        u = np.where(self.free_u, self.sample(self.u, y - 0.5, x), self.given)
        y, x = self.origin(self.v.shape, 0, 0.5)
        v = np.where(self.free_v, self.sample(self.v, y, x - 0.5), 0)
        y, x = self.origin(self.solid.shape, 0.5, 0.5)
        dye = [self.sample(self.dye[..., c], y - 0.5, x - 0.5) for c in range(3)]
        self.u, self.v = u, v
        self.dye = np.where(self.solid[..., None], 0, np.stack(dye, axis=-1))

    def diffuse(self, viscosity: float) -> None:
        def spread(field: Any) -> Any:
            padded = np.pad(field, 1, mode="edge")
            around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
            return field + viscosity * self.dt * (around - 4 * field)

        self.u = np.where(self.free_u, spread(self.u), self.given)
        self.v = np.where(self.free_v, spread(self.v), 0)

    def divergence(self) -> Any:
        outflow = np.diff(self.u, axis=1) + np.diff(self.v, axis=0)
        return np.where(self.solid, 0, outflow)

    def project(self) -> None:
        h, w = self.solid.shape
        matrix, b = lil_matrix((h * w, h * w)), self.divergence().ravel()
        for y in range(h):
            for x in range(w):
                i = y * w + x
                for free, j in (
                    (self.free_u[y, x], i - 1),
                    (self.free_u[y, x + 1], i + 1 if x + 1 < w else -1),
                    (self.free_v[y, x], i - w),
                    (self.free_v[y + 1, x], i + w),
                ):
                    if free:
                        matrix[i, i] -= 1
                        if j >= 0:
                            matrix[i, j] += 1
                if matrix[i, i] == 0:
                    matrix[i, i] = 1
        if not self.is_open:  # only differences of the pressure count
            first = int(np.flatnonzero(~self.solid.ravel())[0])
            matrix[first] = 0
            matrix[first, first], b[first] = 1, 0
        p = spsolve(matrix.tocsr(), b).reshape(h, w)
        beside = np.pad(p, ((0, 0), (1, 1)))
        self.u -= np.where(self.free_u, np.diff(beside, axis=1), 0)
        self.v -= np.where(self.free_v, np.diff(np.pad(p, ((1, 1), (0, 0))), axis=0), 0)


def obstacle(shape: tuple[int, int]) -> Any:
    solid = np.zeros(shape, np.uint8)
    solid[5:9, 6:10] = 1
    return solid


def splash(reference: Reference, m: Splash) -> None:
    """Add a splash by its definition."""

    def weight(shape: tuple[int, int], y: float, x: float) -> Any:
        rows, columns = np.mgrid[: shape[0], : shape[1]]
        apart = (rows + y - m.y) ** 2 + (columns + x - m.x) ** 2
        return np.exp(-apart / m.radius**2)

    one = reference
    one.u += one.free_u * m.velocity[0] * weight(one.u.shape, 0.5, 0)
    one.v += one.free_v * m.velocity[1] * weight(one.v.shape, 0, 0.5)
    dye = weight(one.solid.shape, 0.5, 0.5)[..., None] * np.array(m.dye)
    one.dye += np.where(one.solid[..., None], 0, dye)


@pytest.fixture(scope="module")
def made(device: Device) -> Any:
    """Make simulations that the test looks into; they need no system to step."""
    return lambda *args, **options: FluidSimulationActor(device, *args, **options)


def fields(fluid: FluidSimulationActor) -> tuple[Any, Any, Any]:
    u, v, dye = (fluid.buffers[name].get() for name in ("u", "v", "dye"))
    return u, v, dye


@pytest.mark.parametrize("is_open", [False, True])
def test_a_step_is_that_of_the_reference(made: Any, device: Device, is_open: bool) -> None:  # noqa: FBT001
    solid = obstacle((16, 24))
    options: dict[str, Any] = {"dt": 0.1, "viscosity": 0.4, "sweeps": 400}
    fluid = made(16, 24, obstacles=device.put(solid), wind=WIND if is_open else None, **options)
    reference = Reference(solid, is_open=is_open, dt=0.1)
    blot = Splash(14.0, 7.0, 3.0, velocity=(5.0, -4.0), dye=(1.0, 0.5, 0.25))
    fluid.splash(blot)
    splash(reference, blot)
    for _ in range(4):
        fluid.step(Step()).result()
        reference.advect()
        reference.diffuse(0.4)
        reference.project()
    u, v, dye = fields(fluid)
    np.testing.assert_allclose(u, reference.u, atol=2e-4)
    np.testing.assert_allclose(v, reference.v, atol=2e-4)
    np.testing.assert_allclose(dye, reference.dye, atol=2e-5)
    assert np.abs(reference.divergence()).max() < 1e-9, "the reference itself"
    assert abs(fluid.buffers["divergence"].get()).max() > 0
    assert fluid.measure(Measure()).result()[1] < 1e-4
    assert (u[:, :-1][solid == 1] == 0).all()
    assert (dye[solid == 1] == 0).all()


def test_what_one_adds_has_no_divergence_after_a_step(made: Any) -> None:
    fluid = made(32, 32, lift=30.0, eddies=3.0, sweeps=60)
    fluid.add_source(AddSource(Splash(16.0, 26.0, 4.0, velocity=(0.0, -20.0), dye=(4.0, 2.0, 1.0))))
    fluid.step(Step(50)).result()
    energy, divergence, dye = fluid.measure(Measure()).result()
    assert energy > 100
    assert divergence < 0.05
    assert dye > 0
    assert fields(fluid)[2].min() >= 0


def test_eddies_in_a_box_decay_by_viscosity_alone(made: Any, device: Device) -> None:
    """Taylor and Green: the energy falls by exp(-4 nu k² t), and the form stays."""
    n, viscosity, dt = 32, 1.0, 0.1
    fluid = made(n, n, viscosity=viscosity, dt=dt, sweeps=30)
    k, speed = math.pi / n, 0.05
    y, x = np.mgrid[:n, : n + 1]
    u = speed * np.sin(k * x) * np.cos(k * (y + 0.5))
    fluid.buffers["u"][:] = device.put(u.astype("float32"))
    fluid.buffers["v"][:] = device.put(-u.T.astype("float32").copy())
    before, divergence, _ = fluid.measure(Measure()).result()
    assert divergence < 1e-6
    fluid.step(Step(200)).result()
    after = fluid.measure(Measure()).result()[0]
    assert after / before == pytest.approx(math.exp(-4 * viscosity * k * k * 200 * dt), rel=0.02)
    assert np.corrcoef(fields(fluid)[0].ravel(), u.ravel())[0, 1] > 0.999


def test_dye_that_only_diffuses_is_not_lost(made: Any, device: Device) -> None:
    fluid = made(20, 30, diffusion=2.0, dt=0.1, obstacles=device.put(obstacle((20, 30))), sweeps=1)
    fluid.splash(Splash(12.0, 8.0, 3.0, dye=(1.0, 2.0, 3.0)))
    before, spread = fields(fluid)[2], fluid.measure(Measure()).result()[2]
    fluid.step(Step(300)).result()
    after = fields(fluid)[2]
    assert fluid.measure(Measure()).result()[2] == pytest.approx(spread, rel=1e-5)
    assert after.max() < 0.3 * before.max()


@pytest.mark.slow
def test_it_stays_bounded_and_free_of_divergence_for_ten_thousand_steps(made: Any) -> None:
    fluid = made(24, 24, lift=30.0, eddies=1.0, fade=0.5, sweeps=40)
    fluid.add_source(AddSource(Splash(12.0, 20.0, 3.0, dye=(4.0, 2.0, 1.0))))
    for _ in range(10):
        fluid.step(Step(1000)).result()
        energy, divergence, dye = fluid.measure(Measure()).result()
        assert energy < 1e6
        assert divergence < 0.2
        assert 0 < dye < 1e5


def test_wind_blows_through_an_empty_box_as_it_comes(made: Any) -> None:
    fluid = made(12, 20, wind=7.0, sweeps=5)
    fluid.step(Step(20)).result()
    u, v, _ = fields(fluid)
    np.testing.assert_allclose(u, 7.0, rtol=1e-6)
    assert abs(v).max() < 1e-5
    fluid.set_wind(SetWind(2.0))
    fluid.sweeps = 300
    fluid.step(Step(30)).result()
    np.testing.assert_allclose(fields(fluid)[0], 2.0, rtol=1e-3)


def test_each_picture_shows_what_it_says(made: Any, device: Device) -> None:
    fluid = made(16, 24, obstacles=device.put(obstacle((16, 24))))
    fluid.splash(Splash(18.0, 6.0, 3.0, velocity=(30.0, 0.0), dye=(0.0, 1.0, 0.0)))
    pictures = {}
    for what in ("dye", "speed", "pressure", "divergence", "vorticity"):
        fluid.show(Show(what))
        pictures[what] = fluid.picture(Picture()).result()
        assert (pictures[what][6, 7] == 107).all(), "an obstacle"
    assert pictures["dye"][6, 18, 1] > 200
    assert pictures["dye"][6, 18, 0] < 100
    assert len({one.tobytes() for one in pictures.values()}) == 5
    assert (pictures["pressure"][0] == pictures["pressure"][0, 0]).all(), "there is none yet"


def test_mistakes_are_refused_with_what_was_expected(made: Any, device: Device) -> None:
    fluid = made(8, 8)
    calls: list[tuple[Any, str]] = [
        (lambda: fluid.set_viscosity(SetViscosity(13.0)), "from 0 up to 12.5, not 13"),
        (lambda: fluid.set_wind(SetWind(1.0)), "this box is closed"),
        (lambda: fluid.show(Show("heat")), "one of dye, speed, .*, not 'heat'"),
        (lambda: fluid.splash(Splash(1, 1, 0)), "radius must be a number from 1e-06"),
        (lambda: fluid.splash(Splash(1, 1, 1, velocity=3)), "velocity must be 2 numbers, not 3"),  # type: ignore[arg-type]
        (
            lambda: fluid.splash(Splash(1, 1, 1, dye=(1, 2))),  # type: ignore[arg-type]
            "dye must be 3 numbers",
        ),
        (lambda: made(1, 8), "height must be an int from 2"),
        (
            lambda: fluid.set_obstacles(SetObstacles(device.put(np.zeros((8, 9), np.uint8)))),
            r"uint8\[8, 8\] of .*, not uint8\[8, 9\]",
        ),
    ]
    for call, text in calls:
        with pytest.raises(InvalidArgument, match=text):
            call()
