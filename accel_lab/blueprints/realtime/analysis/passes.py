"""The passes of an analysis: each finds something in a vector, and some change it for the next."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from accel_lab.blueprints.realtime.analysis.summaries import Reductions, Summaries
from accel_lab.blueprints.realtime.checks import require_count, require_number
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array, primitives

REALS = {"float32": "float", "float64": "double"}
QUARTILES = (0.25, 0.75)
MOST_BINS = 1 << 20
THEN = ("keep", "clip", "leave out")
"""In the order of fence_in in passes.cu."""


class Statistics(NamedTuple):
    """Find `Reductions` of what is there; the variance divides by the count less `ddof`."""

    ddof: int = 0


class Normalise(NamedTuple):
    """Move and scale it: to mean 0 and standard deviation 1, or by its "range" to [0, 1].

    Where all values are equal they become 0. It finds `Reductions` of before.
    """

    by: Literal["spread", "range"] = "spread"


class Histogram(NamedTuple):
    """Count values in bins of one width, from `low` to `high` or else between the extremes.

    It finds `Bins`. Infinities among the values need `low` and `high`; without, nothing is counted.
    """

    bins: int = 64
    low: float | None = None
    high: float | None = None


class Quantiles(NamedTuple):
    """Find quantiles, as `numpy.nanquantile` by its method "linear": a buffer float64."""

    at: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0)


class Outliers(NamedTuple):
    """Find what lies `beyond` times the spread from the middle: `Outlying`.

    Attributes:
        by: "quartiles": farther below the first or above the third than so many of their distances
            (Tukey 1977); "spread": farther from the mean than so many standard deviations.
        then: "keep" them, "clip" them to the fence, or "leave out": they become NaN.
    """

    by: Literal["quartiles", "spread"] = "quartiles"
    beyond: float = 1.5
    then: Literal["keep", "clip", "leave out"] = "keep"


class Map(NamedTuple):
    """Call a function `T op(T)` of CUDA C++ for each value, as `primitives.transform` does."""

    op: str
    source: str


Pass = Statistics | Normalise | Histogram | Quantiles | Outliers | Map


class Bins(NamedTuple):
    """Counts, int64 (bins,), and edges, float64 (bins + 1,); the last bin has its upper edge."""

    counts: AccelRef
    edges: AccelRef


class Outlying(NamedTuple):
    """Where outliers are.

    Attributes:
        places: int64, in the flat array, ascending; its size is known to the device alone.
        fences: float64, the least and the greatest value that is none.
    """

    places: AccelRef
    fences: AccelRef


Found = Reductions | Bins | AccelRef | Outlying | None


def require_pass(name: str, one: Any) -> None:
    """Refuse what is no pass.

    Raises:
        InvalidArgument: it is none, or has a parameter that it cannot have.
    """
    what = f"SetPasses: {name}: {type(one).__name__}"
    if isinstance(one, Statistics):
        require_count(f"{what}: ddof", one.ddof, low=0)
    elif isinstance(one, Normalise):
        _require_word(f"{what}: by", one.by, ("spread", "range"))
    elif isinstance(one, Histogram):
        require_count(f"{what}: bins", one.bins, high=MOST_BINS)
        if one.low is not None or one.high is not None:
            low = require_number(f"{what}: low", one.low)
            require_number(f"{what}: high", one.high, low=low, above=True)
    elif isinstance(one, Quantiles):
        if not isinstance(one.at, list | tuple | np.ndarray) or len(one.at) == 0:
            raise InvalidArgument(f"{what}: at must be a list of numbers, not {one.at!r}")
        for number in one.at:
            require_number(f"{what}: at", number, low=0, high=1)
    elif isinstance(one, Outliers):
        _require_word(f"{what}: by", one.by, ("quartiles", "spread"))
        require_number(f"{what}: beyond", one.beyond, low=0)
        _require_word(f"{what}: then", one.then, THEN)
    elif not isinstance(one, Map):
        raise InvalidArgument(
            f"SetPasses: {name} must be a Statistics, Normalise, Histogram, Quantiles, Outliers "
            f"or Map, not {one!r}"
        )


def _require_word(what: str, found: Any, words: tuple[str, ...]) -> None:
    if found not in words:
        raise InvalidArgument(f"{what} must be one of {', '.join(words)}, not {found!r}")


class PassKernels:
    """What the passes over vectors of one dtype run on a device."""

    def __init__(self, device: Device, dtype: str) -> None:
        self.device = device
        self.dtype = dtype
        self.launch = Kernels(device, "passes", defines={"Element": REALS[dtype]}).launch
        self.summaries = Summaries(device)


class Values:
    """A vector in a chain of passes, and what is known of it: nothing is computed twice."""

    def __init__(self, kernels: PassKernels, x: AccelRef) -> None:
        self.kernels = kernels
        self.device = kernels.device
        self.x = x

    def run(self, one: Pass) -> tuple["Values", Found]:
        """Send a pass; return the values for the next one, and what it finds. Does not block."""
        if isinstance(one, Statistics):
            found = self.kernels.summaries.conclude(self._summary, skip_nan=True, ddof=one.ddof)
            return self, found
        if isinstance(one, Normalise):
            return self._normalised(one), self._told
        if isinstance(one, Histogram):
            return self, self._histogram(one)
        if isinstance(one, Quantiles):
            return self, self._quantiles(one.at)
        if isinstance(one, Outliers):
            return self._without_outliers(one)
        return Values(self.kernels, primitives.transform(self.x, one.op, source=one.source)), None

    @cached_property
    def _summary(self) -> Any:
        return self.kernels.summaries.of(self.x)

    @cached_property
    def _told(self) -> Reductions:
        return self.kernels.summaries.conclude(self._summary, skip_nan=True)

    @cached_property
    def _sorted(self) -> AccelRef:
        return primitives.sort(self.x)

    def _zeros(self, shape: tuple[int, ...], dtype: str) -> AccelRef:
        return array.zeros(self.device, shape, dtype)

    def _normalised(self, one: Normalise) -> "Values":
        n, out = self.x.size, self._zeros(self.x.shape, self.x.dtype)
        by_range = int(one.by == "range")
        self.kernels.launch("normalise", n, self.x, n, self._told.numbers, by_range, out)
        return Values(self.kernels, out)

    def _histogram(self, one: Histogram) -> Bins:
        n, bins = self.x.size, one.bins
        found = Bins(self._zeros((bins,), "int64"), self._zeros((bins + 1,), "float64"))
        is_given = int(one.low is not None)
        ends = float(one.low or 0), float(one.high or 0)
        numbers, places = self._told.numbers, self._told.places
        launch = self.kernels.launch
        launch("bin_edges", bins + 1, numbers, places, is_given, *ends, bins, found.edges)
        launch("count_bins", n, self.x, n, found.edges, bins, found.counts)
        return found

    def _quantiles(self, at: Sequence[float]) -> AccelRef:
        wanted = self.device.put(np.array(at, np.float64))
        found = self._zeros((len(at),), "float64")
        args = self._sorted, self._told.places, wanted, len(at), found
        self.kernels.launch("quantiles", len(at), *args)
        return found

    def _without_outliers(self, one: Outliers) -> tuple["Values", Outlying]:
        n, out = self.x.size, self._zeros(self.x.shape, self.x.dtype)
        quartiles = self._quantiles(QUARTILES) if one.by == "quartiles" else None
        fences, is_outside = self._zeros((2,), "float64"), self._zeros((n,), "uint8")
        launch = self.kernels.launch
        launch("set_fences", 1, self._told.numbers, quartiles, float(one.beyond), fences)
        launch("fence_in", n, self.x, n, fences, THEN.index(one.then), is_outside, out)
        found = Outlying(array.nonzero(is_outside)[0], fences)
        return (self if one.then == "keep" else Values(self.kernels, out)), found
