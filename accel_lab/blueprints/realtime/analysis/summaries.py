"""Summaries of arrays: every reduction of them in one pass, and merged with each other."""

from typing import Any, NamedTuple

from accel_lab.blueprints.realtime.checks import require_buffer
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array

ELEMENTS = {"float32": "float", "float64": "double", "int32": "int", "uint8": "Byte"}
"""What `Element` is in the kernels."""
LANES, FAN = 32, 64
"""As in reductions.cu."""
LEAST_EACH = 256
"""How many values are summarised by one thread at least, of many."""
MOST_PARTS = 1 << 16
MOST_CHANNELS = 1 << 12


class ReductionValues(NamedTuple):
    """What was found, as NumPy has it: numbers, or arrays (channels,).

    Attributes:
        count: how many values are numbers.
        nans: how many are not.
        argmin, argmax: the first place of an extreme, counted within the channel.
        norm1, norm2, norm_max: the sum of absolute values, the root of the sum of squares, and the
            largest absolute value.
    """

    count: Any
    nans: Any
    argmin: Any
    argmax: Any
    sum: Any
    mean: Any
    variance: Any
    std: Any
    min: Any
    max: Any
    norm1: Any
    norm2: Any
    norm_max: Any


class Reductions(NamedTuple):
    """Reductions of an array, on the device; `get` fetches them.

    Attributes:
        places: int64, the first four of `ReductionValues`, (4,) or (4, channels).
        numbers: float64, the others, (9,) or (9, channels).
    """

    places: AccelRef
    numbers: AccelRef

    def get(self) -> ReductionValues:
        """Fetch them; waits."""
        return ReductionValues(*self.places.get(), *self.numbers.get())

    def on_device(self, name: str) -> AccelRef:
        """Return one of them as a buffer, () or (channels,); does not wait.

        Raises:
            InvalidArgument: none is called so.
        """
        names = ReductionValues._fields
        if name not in names:
            raise InvalidArgument(
                f"on_device: name must be one of {', '.join(names)}, not {name!r}"
            )
        at = names.index(name)
        first = self.places.shape[0]
        return self.places[at] if at < first else self.numbers[at - first]


class Summary(NamedTuple):
    """What is known of an array, as `Summary` in summary.h; a column for each channel."""

    numbers: AccelRef
    places: AccelRef


class Summaries:
    """Summarises arrays of one device. Nothing here blocks.

    Sums are compensated (Knuth's TwoSum) and variances are Welford's, merged as by Chan, Golub and
    LeVeque, in float64. So a sum is off by about eps * |sum| + eps**2 * n * sum(|x|), and a
    variance, relatively, by about n_part * eps * (1 + mean**2 / variance)**0.5, with n_part the
    values of one part: 256, or n / 65536 of many.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._kernels: dict[str, Kernels] = {}

    def _of(self, dtype: str) -> Kernels:
        if dtype not in self._kernels:
            defines = {"Element": ELEMENTS[dtype]}
            self._kernels[dtype] = Kernels(self.device, "reductions", defines=defines)
        return self._kernels[dtype]

    def of(self, x: AccelRef, channels: int = 1) -> Summary:
        """Summarise an array whose last axis are its channels, or that has one channel."""
        n = x.size // channels
        most = max(LANES, MOST_PARTS // channels // LANES * LANES)
        each = max(LEAST_EACH, -(-n // most))
        parts = LANES * -(-n // (LANES * each))
        summary = self._empty(parts, channels)
        counts = n, channels, parts, each
        self._of(x.dtype).launch("summarise", parts * channels, x, *counts, *summary)
        while parts > 1:
            merged = -(-parts // FAN)
            into = self._empty(merged, channels)
            merges = self._of("float32")  # there is no `Element` in it
            merges.launch("merge_parts", merged * channels, *summary, parts, channels, *into)
            summary, parts = into, merged
        return summary

    def _empty(self, parts: int, channels: int) -> Summary:
        slots = parts * channels
        numbers = array.zeros(self.device, (10, slots), "float64")
        return Summary(numbers, array.zeros(self.device, (5, slots), "int64"))

    def absorb(self, total: Summary, more: Summary, behind: int) -> None:
        """Put the summary of what comes behind so many values into the summary of these."""
        channels = total.numbers.shape[1]
        self._of("float32").launch("absorb", channels, *total, *more, channels, behind)

    def conclude(
        self, summary: Summary, *, by_channel: bool = False, skip_nan: bool = False, ddof: int = 0
    ) -> Reductions:
        """Return what a summary says."""
        channels = summary.numbers.shape[1]
        extents = (channels,) if by_channel else ()
        found = Reductions(
            array.zeros(self.device, (4, *extents), "int64"),
            array.zeros(self.device, (9, *extents), "float64"),
        )
        args = *summary, channels, ddof, int(skip_nan), found.numbers, found.places
        self._of("float32").launch("conclude", channels, *args)
        return found


def require_values(what: str, found: Any, device: Device, *dtypes: str) -> AccelRef:
    """Return a buffer of a device that holds something, of any shape.

    Raises:
        InvalidArgument: it is none, or empty.
    """
    shape = ("n",) * max(1, len(getattr(found, "shape", ())))
    values = require_buffer(what, found, device, shape, *dtypes)
    if values.size == 0:
        extents = ", ".join(map(str, values.shape))
        raise InvalidArgument(f"{what} must have elements, not {values.dtype}[{extents}]")
    return values
