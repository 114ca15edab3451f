"""Cloth: nodes that keep their distances, with pins, wind, a ball, and itself to collide with."""

import math
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from accel_lab.actor import Message, handles
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.realtime.cell_grid import CellList, cell_list
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
from accel_lab.libraries import array

THREADS = ((0, 1), (1, 0), (1, 1), (1, -1))
"""Rows and columns from a node to one whose distance it keeps."""
BENDS = ((0, 2), (2, 0))
"""The same, of those that keep it from folding."""
MOST_CELLS = 64
"""Along each axis, by which nodes are found that collide."""


class SetPull(Message[None], frozen=True):
    """Have everything fall with this acceleration."""

    acceleration: float


class SetBreeze(Message[None], frozen=True):
    """Have this wind blow on the cloth."""

    x: float
    y: float
    z: float


class SetPins(Message[None], frozen=True):
    """Hold the nodes where `pinned`, uint8[rows, columns], is not 0, and no others."""

    pinned: AccelRef


class SetBall(Message[None], frozen=True):
    """Have a ball that nothing gets into; of radius 0 there is none."""

    x: float
    y: float
    z: float
    radius: float


class ClothSimulationActor(Simulation):
    """A cloth of rows and columns of nodes of mass 1, `spacing` apart; y points up.

    A step is Verlet's, and then as many passes over the distances as `passes` says. Those of a pass
    are restored in twelve colours. Those of one colour have no node in common, so their order does
    not matter. Without pins and ball, distances change neither momentum nor angular momentum.

    Parameters:
        positions: float32[rows, columns, 3]; hanging in the plane of x and y when not given.
        pinned: uint8[rows, columns]; the corners of the first row when not given.
        passes: over all distances, in a step.
        bending: how stiff it is against folding, from 0 to 1.
        damping: the rate by which it slows down, 1 / s.
        thickness: nodes closer than that push each other away; None for a cloth that passes
            through itself. It is less than `spacing`.
        pixels: height and width of the picture.
    """

    keep_every: ClassVar = 128
    title: ClassVar = "cloth"
    measures: ClassVar = ("longest thread", "lowest node", "momentum x", "momentum y", "momentum z")

    def __init__(
        self,
        device: Device,
        rows: int,
        columns: int,
        *,
        spacing: float | None = None,
        positions: AccelRef | None = None,
        pinned: AccelRef | None = None,
        dt: float = 0.01,
        gravity: float = 9.8,
        wind: tuple[float, float, float] = (0.0, 0.0, 0.0),
        damping: float = 0.1,
        passes: int = 16,
        bending: float = 0.1,
        thickness: float | None = None,
        pixels: tuple[int, int] = (512, 512),
    ) -> None:
        super().__init__(device, require_pixels("ClothSimulationActor: pixels", pixels))
        self.rows = require_count("ClothSimulationActor: rows", rows, low=3, high=1 << 14)
        self.columns = require_count("ClothSimulationActor: columns", columns, low=3, high=1 << 14)
        self.count = rows * columns
        apart = 1.0 / (max(rows, columns) - 1) if spacing is None else spacing
        self.spacing = require_number("ClothSimulationActor: spacing", apart, low=0, above=True)
        self.width = 2.0 * self.spacing * (max(rows, columns) - 1)
        self.dt = require_number("ClothSimulationActor: dt", dt, low=0, above=True)
        self.damping = require_number("ClothSimulationActor: damping", damping, low=0)
        self.passes = require_count("ClothSimulationActor: passes", passes, high=1 << 10)
        self.bending = require_number("ClothSimulationActor: bending", bending, low=0, high=1)
        self.thickness = thickness
        if thickness is not None:
            name = "ClothSimulationActor: thickness"
            self.thickness = require_number(name, thickness, low=0, high=self.spacing, above=True)
            # A sheet that is not stretched fits into the cube of them.
            self.cell = max(self.thickness, self.width / MOST_CELLS)
            self.cells = max(4, int(self.width / self.cell))
            self.cell_kernels = Kernels(device, "cells", defines={"Real": "float"})
        self.set_pull(SetPull(gravity))
        self.set_breeze(SetBreeze(*require_numbers("ClothSimulationActor: wind", wind, 3)))
        self.set_ball(SetBall(0.0, 0.0, 0.0, 0.0))
        self.kernels = Kernels(device, "cloth")
        shape = rows, columns, 3
        if positions is None:
            x = device.put(self._hanging())
        else:
            name = "ClothSimulationActor: positions"
            x = require_buffer(name, positions, device, shape, "float32").copy()
        self.buffers = {"x": x, "before": x.copy(), "next": self.zeros(shape)}
        if pinned is None:
            corners = np.zeros((rows, columns), np.uint8)
            corners[0, [0, -1]] = 1
            pinned = device.put(corners)
        self.set_pins(SetPins(pinned))

    def _hanging(self) -> np.ndarray:
        row, column = np.mgrid[: self.rows, : self.columns]
        x = (column - (self.columns - 1) / 2) * self.spacing
        y = ((self.rows - 1) / 2 - row) * self.spacing
        return np.stack([x, y, np.zeros_like(x)], axis=-1).astype(np.float32)

    def advance(self) -> Reply[None]:
        """Move, restore the distances, keep out of the ball and of itself."""
        x, before, after = (self.buffers[name] for name in ("x", "before", "next"))
        pinned = self.buffers["pinned"]
        grid = self.rows, self.columns
        numbers = self.dt, math.exp(-self.damping * self.dt), self.gravity, *self.wind
        done = self.kernels.launch("move", self.count, x, before, pinned, *grid, *numbers, after)
        x, before, after = after, x, before
        for _ in range(self.passes):
            done = self._restore(x, pinned, THREADS, 1.0)
            if self.bending:
                done = self._restore(x, pinned, BENDS, self.bending)
            if self.ball[3]:
                done = self.kernels.launch("outside", self.count, x, pinned, self.count, *self.ball)
        if self.thickness is not None:
            # The list is of this step alone, and is not part of the state.
            cells = self.cell, self.cells, *self.cell_list(x)
            done = self.kernels.launch(
                "separate", self.count, x, pinned, *grid, self.thickness, *cells, after
            )
            x, after = after, x
        self.buffers |= {"x": x, "before": before, "next": after}
        return done

    def cell_list(self, x: AccelRef) -> CellList:
        """Order the nodes by their cells; does not block."""
        keys, order = (self.zeros((self.count,), "int32") for _ in range(2))
        given = x, self.count, self.cell, self.cells
        self.kernels.launch("node_keys", self.count, *given, keys, order)
        return cell_list(self.cell_kernels, keys, order, self.cells**3)

    def _restore(
        self, x: AccelRef, pinned: AccelRef, ways: Iterable[tuple[int, int]], stiffness: float
    ) -> Reply[None]:
        grid = self.rows, self.columns
        for dy, dx in ways:
            rest = self.spacing * math.hypot(dy, dx)
            for colour in (0, 1):
                done = self.kernels.launch(
                    "relax", self.count, x, pinned, *grid, dy, dx, colour, rest, stiffness
                )
        return done

    def paint(self, picture: AccelRef) -> None:
        """Paint the cloth from the front, a little from above."""
        height, width = self.size
        nearest = self.zeros((height, width), "uint64")
        meshes = 2 * (self.rows - 1) * (self.columns - 1)
        grid = self.rows, self.columns, self.width
        x = self.buffers["x"]
        self.kernels.launch("cover", meshes, x, *grid, height, width, nearest)
        self.kernels.launch("paint", height * width, nearest, height * width, picture)

    def measured(self) -> list[AccelRef]:
        """Return the longest of the threads by its rest, the lowest node, and the momentum."""
        x = self.buffers["x"].astype("float64")
        before = self.buffers["before"].astype("float64")
        across, down = x[:, 1:] - x[:, :-1], x[1:] - x[:-1]
        longest = array.maximum(
            (across * across).sum(axis=-1).max(), (down * down).sum(axis=-1).max()
        )
        momentum = (x - before).sum(axis=(0, 1)) / self.dt
        length = longest**0.5 / self.spacing
        return [length, x[:, :, 1].min(), momentum[0], momentum[1], momentum[2]]

    @handles(SetPull)
    def set_pull(self, m: SetPull) -> None:
        """Use it from the next step on."""
        self.gravity = require_number("SetPull: acceleration", m.acceleration)

    @handles(SetBreeze)
    def set_breeze(self, m: SetBreeze) -> None:
        """Use it from the next step on."""
        self.wind = tuple(require_number("SetBreeze: x, y and z", one) for one in (m.x, m.y, m.z))

    @handles(SetBall)
    def set_ball(self, m: SetBall) -> None:
        """Use it from the next step on."""
        radius = require_number("SetBall: radius", m.radius, low=0)
        x, y, z = (require_number("SetBall: x, y and z", one) for one in (m.x, m.y, m.z))
        self.ball = x, y, z, radius

    @handles(SetPins)
    def set_pins(self, m: SetPins) -> None:
        """Hold these from the next step on."""
        shape = self.rows, self.columns
        pinned = require_buffer("SetPins: pinned", m.pinned, self.device, shape, "uint8")
        self.buffers["pinned"] = pinned.copy()

    def controls(self) -> tuple[Control, ...]:
        """Return gravity, wind from the front and from the left, and the ball."""
        x, _, z = self.wind
        *_, radius = self.ball
        # What is not set is as it is when the message is made: another slider may have moved since.
        return (
            Control("gravity", 0, 20, self.gravity, SetPull),
            Control(
                "wind x", -20, 20, x, lambda value: SetBreeze(value, self.wind[1], self.wind[2])
            ),
            Control(
                "wind z", -20, 20, z, lambda value: SetBreeze(self.wind[0], self.wind[1], value)
            ),
            Control(
                "ball", 0, self.width / 4, radius, lambda value: SetBall(*self.ball[:3], value)
            ),
        )
