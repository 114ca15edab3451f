"""A chain of passes over one array that stays on the device."""

from collections.abc import Mapping
from typing import NamedTuple

from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime.analysis.passes import (
    REALS,
    Found,
    Pass,
    PassKernels,
    Values,
    require_pass,
)
from accel_lab.blueprints.realtime.analysis.summaries import require_values
from accel_lab.blueprints.realtime.checkpoints import keep
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument


class SetPasses(Message[None], frozen=True):
    """Use these passes from now on, by name and in this order."""

    passes: dict[str, Pass]


class Load(Message[None], frozen=True):
    """Analyse a copy of this array from now on; later writes to it are not seen."""

    values: AccelRef


class Analyse(Message["Analysis"], frozen=True):
    """Run all passes over the array as it was loaded."""


class Analysis(NamedTuple):
    """What an analysis has come to.

    Attributes:
        values: the array as the last pass left it.
        found: what each pass found, by its name; `Map` finds nothing.
    """

    values: AccelRef
    found: dict[str, Found]


class MultiPassAnalysisActor(Actor):
    """Runs passes over an array, each over what the one before left. NaN is left out by all.

    No pass waits for another or for you. What several need, as the sorted values, is computed once.

    Parameters:
        passes: `Statistics`, `Normalise`, `Histogram`, `Quantiles`, `Outliers` and `Map`, by name.
        dtype: of the array, "float32" or "float64".
    """

    def __init__(
        self,
        device: Device,
        passes: Mapping[str, Pass] | None = None,
        *,
        dtype: str = "float32",
    ) -> None:
        if dtype not in REALS:
            raise InvalidArgument(
                f"MultiPassAnalysisActor: dtype must be float32 or float64, not {dtype!r}"
            )
        self.device = device
        self.kernels = PassKernels(device, dtype)
        self.values: AccelRef | None = None
        self.passes: dict[str, Pass] = {}
        self.set_passes(SetPasses(dict(passes or {})))

    @handles(SetPasses)
    def set_passes(self, m: SetPasses) -> None:
        """Check all of them."""
        for name, one in m.passes.items():
            require_pass(name, one)
        self.passes = dict(m.passes)

    @handles(Load)
    def load(self, m: Load) -> None:
        """Copy the array, and keep it against faults."""
        dtype = self.kernels.dtype
        self.values = require_values("Load: values", m.values, self.device, dtype).copy()
        keep(self.device, (self.values,))

    @handles(Analyse)
    def analyse(self, _: Analyse) -> Analysis:
        """Send one pass after the other."""
        if self.values is None:
            raise InvalidArgument("Analyse: nothing is loaded yet; send Load(values) first")
        found: dict[str, Found] = {}
        flat = self.values.reshape(-1)
        values = Values(self.kernels, flat)
        for name, one in self.passes.items():
            values, found[name] = values.run(one)
        # Where no pass has changed anything, what is loaded is not given away.
        left = self.values.copy() if values.x is flat else values.x.reshape(self.values.shape)
        return Analysis(left, found)
