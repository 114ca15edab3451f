"""A fluid in a box: advection, diffusion, eddies, obstacles, and a pressure projection."""

import math
from typing import ClassVar

import numpy as np

from accel_lab.actor import Message, handles
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.realtime.checks import (
    require_buffer,
    require_count,
    require_number,
    require_numbers,
)
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.blueprints.realtime.simulation import Control, Simulation
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument

RELAXATION = 1.7
"""Of a sweep: what is best for many sweeps is close to 2, and leaves more after few of them."""
STABLE = 0.25
"""How much of what a cell has may diffuse to a neighbour in a step."""
LEAST_RADIUS = 1e-6
"""Of a splash, in cells: its square has a reciprocal in float32."""
SHOWN = {"dye": 1.0, "speed": 0.025, "pressure": 0.02, "divergence": 2.0, "vorticity": 0.1}
"""What can be painted, and its contrast."""
_PACKED = np.dtype([("width", "<i4"), ("height", "<i4"), ("open", "<i4"), ("wind", "<f4")])


class SetViscosity(Message[None], frozen=True):
    """Diffuse velocity by this, in cells² / s."""

    value: float


class SetEddies(Message[None], frozen=True):
    """Push eddies to turn faster by this strength (vorticity confinement)."""

    strength: float


class SetLift(Message[None], frozen=True):
    """Have dye rise with this acceleration."""

    acceleration: float


class SetWind(Message[None], frozen=True):
    """Have this wind at the left of an open box, in cells / s."""

    speed: float


class SetObstacles(Message[None], frozen=True):
    """Let nothing flow where `solid`, uint8[height, width], is not 0."""

    solid: AccelRef


class Show(Message[None], frozen=True):
    """Paint this: "dye", "speed", "pressure", "divergence" or "vorticity"."""

    what: str


class Splash(Message[None], frozen=True):
    """Add velocity and dye round a place once; or, as a source, in each second from now on."""

    x: float
    y: float
    radius: float
    velocity: tuple[float, float] = (0.0, 0.0)
    dye: tuple[float, float, float] = (0.0, 0.0, 0.0)


class AddSource(Message[None], frozen=True):
    """Add what a splash has to its place in each second, from now on."""

    splash: Splash


class FluidSimulationActor(Simulation):
    """An incompressible fluid on a staggered grid of cells of width 1; y points downwards.

    A step carries velocity and dye along (semi-Lagrangian), diffuses them, pushes, and projects by
    red and black sweeps of over-relaxation that begin with the pressure of the step before. What
    divergence is left is measured, and can be seen.

    Parameters:
        height, width: in cells.
        dt: seconds of a step.
        viscosity, diffusion: of velocity and of dye, in cells² / s.
        eddies: the strength of vorticity confinement.
        lift: the acceleration of dye upwards.
        fade: by which rate dye vanishes, 1 / s.
        wind: None for a closed box; else the wind at the left of one that is open at the right.
        obstacles: uint8[height, width], or None.
        sweeps: how often all pressures are relaxed in a step.
    """

    keep_every: ClassVar = 64
    title: ClassVar = "fluid"
    measures: ClassVar = ("kinetic energy", "largest divergence", "dye")

    def __init__(
        self,
        device: Device,
        height: int,
        width: int,
        *,
        dt: float = 0.02,
        viscosity: float = 0.0,
        diffusion: float = 0.0,
        eddies: float = 0.0,
        lift: float = 0.0,
        fade: float = 0.0,
        wind: float | None = None,
        obstacles: AccelRef | None = None,
        sweeps: int = 40,
    ) -> None:
        h = require_count("FluidSimulationActor: height", height, low=2, high=1 << 14)
        w = require_count("FluidSimulationActor: width", width, low=2, high=1 << 14)
        super().__init__(device, (h, w))
        self.dt = require_number("FluidSimulationActor: dt", dt, low=0, above=True)
        self.diffusion = self._diffusion("FluidSimulationActor: diffusion", diffusion)
        self.fade = require_number("FluidSimulationActor: fade", fade, low=0)
        self.sweeps = require_count("FluidSimulationActor: sweeps", sweeps, high=1 << 16)
        self.open = wind is not None
        self.wind = 0.0
        if wind is not None:
            self.set_wind(SetWind(wind))
        self.set_viscosity(SetViscosity(viscosity))
        self.set_eddies(SetEddies(eddies))
        self.set_lift(SetLift(lift))
        self.show(Show("dye"))
        self.sources: list[Splash] = []
        self.kernels = Kernels(device, "fluid")
        fields = {"u": (h, w + 1), "v": (h + 1, w), "dye": (h, w, 3)}
        self.buffers = {name: self.zeros(shape) for name, shape in fields.items()}
        self.buffers["u"] += self.wind
        self.buffers |= {f"next_{name}": self.zeros(shape) for name, shape in fields.items()}
        self.buffers |= {name: self.zeros((h, w)) for name in ("p", "divergence", "curl")}
        self.buffers["solid"] = self.zeros((h, w), "uint8")
        if obstacles is not None:
            self.set_obstacles(SetObstacles(obstacles))

    def _diffusion(self, what: str, value: float) -> float:
        return require_number(what, value, low=0, high=STABLE / self.dt)

    @property
    def _box(self) -> bytes:
        height, width = self.size
        return np.array((width, height, self.open, self.wind), _PACKED).tobytes()

    def _fields(self, *names: str) -> list[AccelRef]:
        return [self.buffers[name] for name in names]

    def _turn(self) -> None:
        """Take what was just computed for the state."""
        for name in ("u", "v", "dye"):
            after = f"next_{name}"
            self.buffers[name], self.buffers[after] = self.buffers[after], self.buffers[name]

    def advance(self) -> Reply[None]:
        """Carry along, diffuse, push, project."""
        height, width = self.size
        cells, faces, box = height * width, (height + 1) * (width + 1), self._box
        launch = self.kernels.launch
        (solid,) = self._fields("solid")
        moving = "u", "v", "dye", "solid"
        after = "next_u", "next_v", "next_dye"
        fade = math.exp(-self.fade * self.dt)
        launch("advect", faces, *self._fields(*moving), box, self.dt, fade, *self._fields(*after))
        self._turn()
        if self.viscosity or self.diffusion:
            by = self.viscosity * self.dt, self.diffusion * self.dt
            launch("diffuse", faces, *self._fields(*moving), box, *by, *self._fields(*after))
            self._turn()
        for source in self.sources:
            self._splash(source, self.dt)
        u, v, dye, curl, p, divergence = self._fields("u", "v", "dye", "curl", "p", "divergence")
        if self.eddies or self.lift:
            launch("curl", cells, u, v, box, curl)
            by = self.eddies * self.dt, self.lift * self.dt
            launch("push", faces, u, v, dye, curl, solid, box, *by)
        launch("divergence", cells, u, v, solid, box, divergence)
        for _ in range(self.sweeps):
            for colour in (0, 1):
                launch("relax", cells // 2, p, divergence, solid, box, colour, RELAXATION)
        return launch("project", faces, u, v, p, solid, box)

    def _splash(self, m: Splash, times: float) -> None:
        height, width = self.size
        vx, vy = m.velocity
        numbers = [times * one for one in (vy, vx, *m.dye)]
        fields = self._fields("u", "v", "dye", "solid")
        self.kernels.launch(
            "splash", (height + 1) * (width + 1), *fields, self._box, m.y, m.x, m.radius, *numbers
        )

    def paint(self, picture: AccelRef) -> None:
        """Paint what `Show` has chosen, a pixel a cell."""
        height, width = self.size
        what = list(SHOWN).index(self.shown), SHOWN[self.shown]
        fields = self._fields("u", "v", "p", "dye", "solid")
        self.kernels.launch("paint", height * width, *fields, self._box, *what, picture)

    def measured(self) -> list[AccelRef]:
        """Return the energy, the largest divergence of a cell, and how much dye there is."""
        u, v, dye, solid, divergence = self._fields("u", "v", "dye", "solid", "divergence")
        height, width = self.size
        self.kernels.launch("divergence", height * width, u, v, solid, self._box, divergence)
        u, v = u.astype("float64"), v.astype("float64")
        energy = 0.5 * ((u * u).sum() + (v * v).sum())
        return [energy, abs(divergence).max(), dye.astype("float64").sum()]

    @handles(Splash)
    def splash(self, m: Splash) -> None:
        """Add it once."""
        self._splash(self._checked(m), 1.0)

    @handles(AddSource)
    def add_source(self, m: AddSource) -> None:
        """Add it in each step from now on."""
        self.sources.append(self._checked(m.splash))

    def _checked(self, m: Splash) -> Splash:
        if not isinstance(m, Splash):
            raise InvalidArgument(f"AddSource: splash must be a Splash, not {m!r}")
        require_number("Splash: radius", m.radius, low=LEAST_RADIUS)
        require_numbers("Splash: velocity", m.velocity, 2)
        require_numbers("Splash: dye", m.dye, 3)
        require_numbers("Splash: x and y", (m.x, m.y), 2)
        return m

    @handles(SetObstacles)
    def set_obstacles(self, m: SetObstacles) -> None:
        """Let nothing flow there from the next step on."""
        solid = require_buffer("SetObstacles: solid", m.solid, self.device, self.size, "uint8")
        self.buffers["solid"] = solid.copy()

    @handles(SetViscosity)
    def set_viscosity(self, m: SetViscosity) -> None:
        """Use it from the next step on."""
        self.viscosity = self._diffusion("SetViscosity: value", m.value)

    @handles(SetEddies)
    def set_eddies(self, m: SetEddies) -> None:
        """Use it from the next step on."""
        self.eddies = require_number("SetEddies: strength", m.strength, low=0)

    @handles(SetLift)
    def set_lift(self, m: SetLift) -> None:
        """Use it from the next step on."""
        self.lift = require_number("SetLift: acceleration", m.acceleration)

    @handles(SetWind)
    def set_wind(self, m: SetWind) -> None:
        """Use it from the next step on."""
        if not self.open:
            raise InvalidArgument("SetWind: this box is closed; open one with wind=")
        self.wind = require_number("SetWind: speed", m.speed)

    @handles(Show)
    def show(self, m: Show) -> None:
        """Paint it from the next picture on."""
        if m.what not in SHOWN:
            raise InvalidArgument(f"Show: what must be one of {', '.join(SHOWN)}, not {m.what!r}")
        self.shown = m.what

    def controls(self) -> tuple[Control, ...]:
        """Return what is shown, viscosity, eddies, lift, and the wind of an open box."""
        names = tuple(SHOWN)
        found = [
            Control("show", 0, len(names) - 1, names.index(self.shown), _shown, names),
            Control("viscosity", 0, STABLE / self.dt, self.viscosity, SetViscosity),
            Control("eddies", 0, 20, self.eddies, SetEddies),
            Control("lift", -50, 50, self.lift, SetLift),
        ]
        if self.open:
            found.append(Control("wind", 0, 60, self.wind, SetWind))
        return tuple(found)


def _shown(index: float) -> Show:
    return Show(list(SHOWN)[round(index)])
