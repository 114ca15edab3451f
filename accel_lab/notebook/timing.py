"""`%%gputime`: how long a cell takes, by the device's clock, as a distribution."""

import shlex
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

import numpy as np

from accel_lab.compute.cells.cell_execution import Timed
from accel_lab.display.counts import counted
from accel_lab.display.table import WIDTH, as_html, as_text
from accel_lab.errors import InvalidArgument
from accel_lab.views.timeline import duration

USAGE = "%%gputime [device] [-n N] [-r R]"
REPEAT = 7
_COLUMNS = ("Clock", "Median", "Quartiles", "Fastest", "Slowest")


class TimingOptions(NamedTuple):
    """What stands behind `%%gputime`; `number` is 0 where it is to be chosen."""

    device: str | None
    number: int
    repeat: int


class Timing:
    """How long one repetition of a cell took in each run, in seconds.

    Attributes:
        device: where it ran.
        number: how often each run repeated the cell.
        device_s: by the device's clock, as `compute.meter` says, in the order of the runs.
        wall_s: from before the first line to when the device was through, in the context's process.
    """

    def __init__(self, device: str, timed: Timed) -> None:
        self.device = device
        self.number = timed.number
        self.device_s = tuple(run.device_s / timed.number for run in timed.runs)
        self.wall_s = tuple(run.wall_s / timed.number for run in timed.runs)

    @property
    def repeat(self) -> int:
        """How many runs there were."""
        return len(self.device_s)

    @property
    def median_s(self) -> float:
        """The median of `device_s`."""
        return float(np.median(self.device_s))

    @property
    def quartiles_s(self) -> tuple[float, float]:
        """Between which half of `device_s` lies."""
        return _quartiles(self.device_s)

    @property
    def wall_median_s(self) -> float:
        """The median of `wall_s`."""
        return float(np.median(self.wall_s))

    def __repr__(self) -> str:
        rows = as_text(_COLUMNS, list(self._rows()), set(_COLUMNS[1:]), WIDTH)
        return "\n".join((self._title(), *rows, self._note()))

    def _repr_html_(self) -> str:
        table = as_html(self._title(), _COLUMNS, list(self._rows()))
        return f"{table}<small>{escape(self._note())}</small>"

    def _title(self) -> str:
        runs = counted(self.repeat, "run")
        return f"{duration(self.median_s)} on {self.device}: {runs} of {self.number:,}"

    def _note(self) -> str:
        """Warn of what timing does: a cell such as `x += 1` has done it as often."""
        times = 1 + self.repeat * self.number
        return f"the cell ran at least {times:,} times: what it writes in place is written as often"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for clock, times in (("device", self.device_s), ("wall", self.wall_s)):
            lower, upper = _quartiles(times)
            yield (
                clock,
                duration(float(np.median(times))),
                f"{duration(lower)} to {duration(upper)}",
                duration(min(times)),
                duration(max(times)),
            )


def parse(line: str) -> TimingOptions:
    """Read what stands behind `%%gputime`.

    Raises:
        InvalidArgument: it is not as USAGE says.
    """
    device = None
    counts = {"-n": 0, "-r": REPEAT}
    words = iter(shlex.split(line))
    for word in words:
        if word[:2] in counts:  # the number may follow without a space, as in %%timeit
            option = word[:2]
            count = word[2:] or next(words, "")
            if not count.isdecimal() or int(count) < 1:
                raise InvalidArgument(f"{option} takes a number, from 1, not {count!r}: {USAGE}")
            counts[option] = int(count)
        elif word.startswith("-") or device is not None:
            raise InvalidArgument(f"{word!r} is not understood: {USAGE}")
        else:
            device = word
    return TimingOptions(device, counts["-n"], counts["-r"])


def _quartiles(times: tuple[float, ...]) -> tuple[float, float]:
    lower, upper = np.quantile(times, (0.25, 0.75))
    return float(lower), float(upper)
