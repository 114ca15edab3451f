"""Discs in a box that collide, found by cell lists: gravity, drag and walls."""

import math
from typing import ClassVar

from accel_lab.actor import Message, handles
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.realtime.cell_grid import CellGrid, CellLists
from accel_lab.blueprints.realtime.checks import (
    require_buffer,
    require_count,
    require_number,
    require_numbers,
    require_pixels,
)
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.blueprints.realtime.simulation import Control, Simulation
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument

STABLE = 0.2
"""How much of a spring's time 1 / sqrt(2 stiffness) a step may take."""


class SetGravity(Message[None], frozen=True):
    """Have everything fall with this acceleration."""

    x: float
    y: float


class SetDrag(Message[None], frozen=True):
    """Slow every disc by this rate, 1 / s."""

    rate: float


class SetBounce(Message[None], frozen=True):
    """Have a wall throw back with this share of the speed, from 0 to 1."""

    share: float


class SetFriction(Message[None], frozen=True):
    """Damp the closing speed of discs that overlap by this rate, 1 / s."""

    rate: float


class ParticleSystemActor(Simulation):
    """Discs of mass 1 in the box (0, 0) to (width, height).

    Discs that overlap push each other away by `stiffness` times the overlap; that is elastic
    unless there is friction. Without drag, friction and lossy walls the energy is constant.

    Parameters:
        positions: float32[n, 2], a buffer of the device.
        velocities: the same; at rest when not given.
        box: width and height.
        dt: seconds of a step.
        pixels: height and width of the picture.
    """

    title: ClassVar = "particles"
    measures: ClassVar = ("kinetic energy", "potential energy", "momentum x", "momentum y")

    def __init__(
        self,
        device: Device,
        positions: AccelRef,
        velocities: AccelRef | None = None,
        *,
        radius: float,
        box: tuple[float, float] = (1.0, 1.0),
        dt: float = 1e-3,
        stiffness: float = 1e4,
        friction: float = 0.0,
        gravity: tuple[float, float] = (0.0, -1.0),
        drag: float = 0.0,
        bounce: float = 1.0,
        pixels: tuple[int, int] = (512, 512),
    ) -> None:
        super().__init__(device, require_pixels("ParticleSystemActor: pixels", pixels))
        x = require_buffer("ParticleSystemActor: positions", positions, device, ("n", 2), "float32")
        self.count = x.shape[0]
        require_count("ParticleSystemActor: the number of positions", self.count)
        v = self.zeros(x.shape)
        if velocities is not None:
            name = "ParticleSystemActor: velocities"
            v = require_buffer(name, velocities, device, x.shape, "float32").copy()
        self.radius = require_number("ParticleSystemActor: radius", radius, low=0, above=True)
        name, least = "ParticleSystemActor: box", 2 * self.radius
        self.box = require_numbers(name, box, 2, low=least, above=True)
        self.stiffness = require_number("ParticleSystemActor: stiffness", stiffness, low=0)
        self.dt = require_number("ParticleSystemActor: dt", dt, low=0, above=True)
        if self.dt * math.sqrt(2 * self.stiffness) > STABLE:
            most = STABLE / math.sqrt(2 * self.stiffness)
            raise InvalidArgument(
                f"ParticleSystemActor: dt must be at most {most:.2g} for a stiffness of "
                f"{self.stiffness:g}, not {self.dt:g}"
            )
        self.set_gravity(SetGravity(*require_numbers("ParticleSystemActor: gravity", gravity, 2)))
        self.set_drag(SetDrag(drag))
        self.set_bounce(SetBounce(bounce))
        self.set_friction(SetFriction(friction))
        self.lists = CellLists(device, CellGrid.over((0, 0), self.box, 2 * self.radius))
        self.kernels = Kernels(device, "particles")
        self.buffers = {"x": x.copy(), "v": v, "a": self.zeros(x.shape)}
        self._sort()
        self._forces()

    def _sort(self) -> None:
        cells = self.lists.of(self.buffers["x"])
        self.buffers |= {"order": cells.order, "starts": cells.starts}

    def _forces(self) -> None:
        x, v, a, order, starts = self.buffers.values()
        numbers = self.radius, self.stiffness, self.friction, *self.gravity
        cells = self.lists.packed, order, starts
        self.kernels.launch("forces", self.count, x, v, self.count, *numbers, *cells, a)

    def advance(self) -> Reply[None]:
        """Kick, drift, find who collides, kick."""
        x, v, a = (self.buffers[name] for name in "xva")
        damping = math.exp(-0.5 * self.dt * self.drag)
        walls = self.radius, *self.box
        numbers = *walls, self.dt, damping, self.bounce
        self.kernels.launch("drift", 2 * self.count, x, v, a, self.count, *numbers)
        self._sort()
        self._forces()
        return self.kernels.launch("kick", 2 * self.count, v, a, self.count, self.dt, damping)

    def paint(self, picture: AccelRef) -> None:
        """Paint the discs, coloured by their speed."""
        x, v, _, order, starts = self.buffers.values()
        fast = 2 * math.sqrt(max(math.hypot(*self.gravity), 0.1) * self.box[1])
        rows, columns = self.size
        numbers = self.radius, *self.box, fast
        cells = self.lists.packed, order, starts
        self.kernels.launch("paint", rows * columns, x, v, *numbers, *cells, picture, rows, columns)

    def measured(self) -> list[AccelRef]:
        """Return energies and momentum."""
        x, v, _, order, starts = self.buffers.values()
        kinetic, potential = (self.zeros((self.count,), "float64") for _ in range(2))
        numbers = self.radius, self.stiffness, *self.gravity
        cells = self.lists.packed, order, starts
        self.kernels.launch(
            "energies", self.count, x, v, self.count, *numbers, *cells, kinetic, potential
        )
        momentum = v.astype("float64").sum(axis=0)
        return [kinetic.sum(), potential.sum(), momentum[0], momentum[1]]

    @handles(SetGravity)
    def set_gravity(self, m: SetGravity) -> None:
        """Use it from the next step on."""
        self.gravity = (
            require_number("SetGravity: x", m.x),
            require_number("SetGravity: y", m.y),
        )

    @handles(SetDrag)
    def set_drag(self, m: SetDrag) -> None:
        """Use it from the next step on."""
        self.drag = require_number("SetDrag: rate", m.rate, low=0)

    @handles(SetBounce)
    def set_bounce(self, m: SetBounce) -> None:
        """Use it from the next step on."""
        self.bounce = require_number("SetBounce: share", m.share, low=0, high=1)

    @handles(SetFriction)
    def set_friction(self, m: SetFriction) -> None:
        """Use it from the next step on."""
        self.friction = require_number("SetFriction: rate", m.rate, low=0, high=0.5 / self.dt)

    def controls(self) -> tuple[Control, ...]:
        """Return gravity, drag, bounce and friction."""
        x, y = self.gravity
        return (
            Control("gravity x", -5, 5, x, lambda value: SetGravity(value, self.gravity[1])),
            Control("gravity y", -5, 5, y, lambda value: SetGravity(self.gravity[0], value)),
            Control("drag", 0, 5, self.drag, SetDrag),
            Control("bounce", 0, 1, self.bounce, SetBounce),
            Control("friction", 0, 0.1 / self.dt, self.friction, SetFriction),
        )
