"""What arrays held at the looks of one name on one device, thinned; and all such series."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from accel_lab.compute.events.samples import ValuesSeen

POINTS = 96
"""So many looks are kept of a series, and the newest; beyond, each second one goes."""
SERIES = 32
"""So many series are kept; beyond, the one goes whose newest look is the oldest."""


@dataclass(slots=True)
class Series:
    """What was seen under one name on one device.

    Attributes:
        newest: the newest look.
        points: looks, ascending: each `stride`-th one, from the first on.
        stride: from one kept look to the next one.
    """

    newest: ValuesSeen
    points: list[ValuesSeen] = field(default_factory=list)
    stride: int = 1

    def take(self, one: ValuesSeen) -> None:
        """Take a look."""
        self.newest = one
        if self._is_kept(one):
            self.points.append(one)
        while len(self.points) > POINTS:
            self.stride *= 2
            self.points = [one for one in self.points if self._is_kept(one)]

    def _is_kept(self, one: ValuesSeen) -> bool:
        return (one.look - 1) % self.stride == 0

    def looks(self) -> list[ValuesSeen]:
        """Return those that are drawn, ascending."""
        ends = self.points[-1:] == [self.newest]
        return self.points if ends else [*self.points, self.newest]

    def copy(self) -> "Series":
        """Return one that goes on by itself."""
        return Series(self.newest, self.points.copy(), self.stride)

    def until(self, moment: float) -> "Series | None":
        """Return what was known then, as far as it is not forgotten; None for nothing."""
        known = [one for one in self.looks() if one.at <= moment]
        if not known:
            return None
        return Series(known[-1], [one for one in self.points if one.at <= moment], self.stride)


@dataclass
class Observations:
    """All series of a system; made in one thread at a time.

    Attributes:
        series: by name and device, the one whose first look came first before the others.
    """

    series: dict[tuple[str, str], Series] = field(default_factory=dict)

    def take(self, one: ValuesSeen) -> None:
        """Take a look."""
        key = one.name, one.device
        if key not in self.series and len(self.series) >= SERIES:
            del self.series[min(self.series, key=lambda key: self.series[key].newest.at)]
        self.series.setdefault(key, Series(one)).take(one)

    def facts(self) -> Iterator[ValuesSeen]:
        """Yield looks that make of nothing what is drawn of these."""
        for one in self.series.values():
            yield from one.looks()

    def until(self, moment: float) -> "Observations":
        """Return what was known then, as far as it is not forgotten."""
        known = ((key, one.until(moment)) for key, one in self.series.items())
        return Observations({key: one for key, one in known if one is not None})

    def copy(self) -> "Observations":
        """Return one that goes on by itself."""
        return Observations({key: one.copy() for key, one in self.series.items()})
