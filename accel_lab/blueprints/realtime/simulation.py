"""What every simulation is: an actor that steps, paints, measures, and says what can be set.

Its state is buffers of a device. Every so many steps they are checkpointed, so that a fault costs
a rerun of the steps since, and nothing else.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_lab.actor import Actor, Message, handles
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.realtime.checkpoints import keep
from accel_lab.blueprints.realtime.checks import require_count
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array

MOST_STEPS = 1 << 16


class Step(Message[None], frozen=True):
    """Go on by so many steps; the reply is done when the device has done the last one."""

    steps: int = 1


class Picture(Message[NDArray[np.uint8]], frozen=True):
    """Paint the state as it is now: red, green and blue of each pixel, (height, width, 3)."""


class Measure(Message[NDArray[np.float64]], frozen=True):
    """Measure the state as it is now; `Describe` tells what the numbers are."""


class Describe(Message["Description"], frozen=True):
    """Tell what there is to see and to set; asks no device."""


class Control(NamedTuple):
    """A number that can be set while the simulation runs.

    Attributes:
        value: what it is now.
        message: makes the message that sets it.
        choices: words, where the number is which of them is chosen.
    """

    name: str
    low: float
    high: float
    value: float
    message: Callable[[float], Message[None]]
    choices: tuple[str, ...] = ()


class Description(NamedTuple):
    """What a simulation is now.

    Attributes:
        title: what it is called.
        device: where it runs.
        steps: how many it has been sent.
        size: height and width of its picture.
        measures: the names of what `Measure` tells.
        controls: what can be set.
    """

    title: str
    device: Device
    steps: int
    size: tuple[int, int]
    measures: tuple[str, ...]
    controls: tuple[Control, ...]


class Simulation(Actor):
    """A simulation on one device.

    Attributes:
        keep_every: after how many steps its buffers are checkpointed.
        device: where it runs.
        buffers: its whole state, by name.
        steps: how many it has been sent.
    """

    keep_every: ClassVar[int] = 256
    title: ClassVar[str]
    measures: ClassVar[tuple[str, ...]]

    def __init__(self, device: Device, size: tuple[int, int]) -> None:
        if not isinstance(device, Device):
            raise InvalidArgument(f"{type(self).__name__}: device must be a Device, not {device!r}")
        self.device = device
        self.size = size
        self.buffers: dict[str, AccelRef] = {}
        self.steps = 0

    @abstractmethod
    def advance(self) -> Reply[None]:
        """Send one step, and return the reply of its last launch."""

    @abstractmethod
    def paint(self, picture: AccelRef) -> None:
        """Paint the state into uint8[height, width, 3]."""

    @abstractmethod
    def measured(self) -> list[AccelRef]:
        """Return the measures, each a 0-d buffer."""

    @abstractmethod
    def controls(self) -> tuple[Control, ...]:
        """Return what can be set."""

    @handles(Step)
    def step(self, m: Step) -> Reply[None]:
        """Send the steps."""
        for _ in range(require_count("Step: steps", m.steps, high=MOST_STEPS)):
            done = self.advance()
            self.steps += 1
            if self.steps % self.keep_every == 0:
                keep(self.device, self.buffers.values())
        return done

    @handles(Picture)
    def picture(self, _: Picture) -> Reply[Any]:
        """Paint, and fetch what was painted."""
        painted = array.zeros(self.device, (*self.size, 3), "uint8")
        self.paint(painted)
        return self.device.get(painted)

    @handles(Measure)
    def measure(self, _: Measure) -> Reply[Any]:
        """Fetch the measures as one array."""
        return self.device.get(array.stack([array.cast(one, "float64") for one in self.measured()]))

    @handles(Describe)
    def describe(self, _: Describe) -> Description:
        """Tell what it is."""
        return Description(
            self.title, self.device, self.steps, self.size, self.measures, self.controls()
        )

    def zeros(self, shape: tuple[int, ...], dtype: str = "float32") -> AccelRef:
        """Return a buffer of zeros on its device."""
        return array.zeros(self.device, shape, dtype)
