"""Many reductions in one pass over an array, and over all arrays that came so far."""

from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime.analysis.summaries import (
    ELEMENTS,
    MOST_CHANNELS,
    Reductions,
    Summaries,
    Summary,
    require_values,
)
from accel_lab.blueprints.realtime.checkpoints import keep
from accel_lab.blueprints.realtime.checks import require_count
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument

KEEP_EVERY = 64
"""After how many arrays the totals are checkpointed."""


class Reduce(Message[Reductions], frozen=True):
    """Reduce an array, float32, float64, int32 or uint8 of any shape; leaves the totals alone."""

    values: AccelRef


class Accumulate(Message[None], frozen=True):
    """Count an array towards the totals, as if it came behind those before."""

    values: AccelRef


class Totals(Message[Reductions], frozen=True):
    """Tell the reductions of all arrays that were accumulated, as of one."""


class Forget(Message[None], frozen=True):
    """Begin the totals anew."""


class ReductionAnalysisActor(Actor):
    """Finds count, sum, mean, variance, extremes, their places and norms in one pass, in float64.

    The numbers do not depend on the number of threads, so both backends have the same bits. How
    exact they are is said in `Summaries`. NaN makes what it touches NaN, as in NumPy, and its first
    place is that of both extremes.

    Parameters:
        by_channel: reduce each channel by itself; these are the last axis.
        skip_nan: leave NaN out, as `numpy.nansum` does.
        ddof: the variance divides by the count less this.
    """

    def __init__(
        self, device: Device, *, by_channel: bool = False, skip_nan: bool = False, ddof: int = 0
    ) -> None:
        self.device = device
        self.by_channel = by_channel
        self.skip_nan = skip_nan
        self.ddof = require_count("ReductionAnalysisActor: ddof", ddof, low=0)
        self.summaries = Summaries(device)
        self.total: Summary | None = None
        self.seen = 0
        self.arrays = 0

    @handles(Reduce)
    def reduce(self, m: Reduce) -> Reductions:
        """Summarise it, and say what there is."""
        return self._conclude(self._summary("Reduce: values", m.values))

    @handles(Accumulate)
    def accumulate(self, m: Accumulate) -> None:
        """Merge its summary into that of the others."""
        summary = self._summary("Accumulate: values", m.values)
        channels = summary.numbers.shape[1]
        if self.total is None:
            self.total = summary
        elif channels != (before := self.total.numbers.shape[1]):
            raise InvalidArgument(
                f"Accumulate: values must have {before} channels, as those before, not {channels}"
            )
        else:
            self.summaries.absorb(self.total, summary, self.seen)
        self.seen += m.values.size // channels
        self.arrays += 1
        if self.arrays % KEEP_EVERY == 0:
            keep(self.device, self.total)

    @handles(Totals)
    def totals(self, _: Totals) -> Reductions:
        """Say what there is of all of them."""
        if self.total is None:
            raise InvalidArgument("Totals: nothing is accumulated yet; send Accumulate(values)")
        return self._conclude(self.total)

    @handles(Forget)
    def forget(self, _: Forget) -> None:
        """Let the totals go."""
        self.total, self.seen = None, 0

    def _summary(self, what: str, found: AccelRef) -> Summary:
        values = require_values(what, found, self.device, *ELEMENTS)
        if not self.by_channel:
            return self.summaries.of(values)
        channels = values.shape[-1]
        if channels > MOST_CHANNELS:
            raise InvalidArgument(
                f"{what} must have at most {MOST_CHANNELS} channels in its last axis, "
                f"not {channels}"
            )
        return self.summaries.of(values, channels)

    def _conclude(self, summary: Summary) -> Reductions:
        how = {"by_channel": self.by_channel, "skip_nan": self.skip_nan}
        return self.summaries.conclude(summary, ddof=self.ddof, **how)
