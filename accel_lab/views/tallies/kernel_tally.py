"""What is counted of each kernel, copy and function, so that a look costs what is new."""

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from accel_lab.compute.events.samples import Slice
from accel_lab.compute.lineage.senders import Senders
from accel_lab.views.scene.scene import Scene

_NOBODYS: tuple[int, float, int | None] = 0, 0, None
CELLS = 256
"""So many cells are known of a kernel, the newest."""


@dataclass(slots=True, eq=False)
class Kernel:
    """One kind of work on one stream; times in seconds, `last` by the wall.

    Attributes:
        calls: how many came to their end; `total`, `longest` and `last` are theirs.
        lost: how many ended with their context.
        cells: the numbers of the notebook cells that have sent it, the newest 256.
        earlier: whether there were cells before these.
    """

    name: str
    device: str
    stream: str
    kind: str
    calls: int = 0
    total: float = 0.0
    longest: float = 0.0
    last: float = 0.0
    lost: int = 0
    cells: set[int] = field(default_factory=set)
    earlier: bool = False
    runs: tuple[tuple[int, int], ...] = ()
    """The same numbers: the first and the last of each run of them."""

    def sent_by(self, cell: int) -> None:
        """Note a cell that has sent it."""
        self.cells.add(cell)
        if len(self.cells) > CELLS:
            self.cells.remove(min(self.cells))
            self.earlier = True
        self.runs = tuple(_runs(sorted(self.cells)))


class Rest(NamedTuple):
    """Those that are not listed, together."""

    kinds: int
    calls: int
    total: float
    longest: float
    last: float
    lost: int


class KernelTally:
    """The kernels of one scene.

    Attributes:
        kernels: those that were seen, in the order in which they were first seen.
        seen: how many slices were counted or passed over because the scene had forgotten them.
        forgotten: how many were passed over.
    """

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.seen = self.forgotten = 0
        self._known: dict[tuple[str, str, str, str], Kernel] = {}

    def follow(self, scene: Scene) -> None:
        """Take what is new in the scene."""
        if (new := min(scene.traced - self.seen, len(scene.slices))) > 0:
            slices = list(islice(reversed(scene.slices), new))
            slices.reverse()
            self.forgotten += slices[0][0] - self.seen
            self._count(slices, scene.senders)
            self.seen = scene.traced
        for device, running in scene.running.items():
            for one in running:
                if one.kind != "untraced":
                    self._note_cell(self.find(device, one), scene.senders.get(device), one.seq)

    def find(self, device: str, one: Slice) -> Kernel:
        """Return the kernel of a slice."""
        key = device, one.stream, one.name, one.kind
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Kernel(one.name, device, one.stream, one.kind)
            self.kernels.append(found)
        return found

    def _count(self, slices: Iterable[tuple[int, str, Slice]], senders: dict[str, Senders]) -> None:
        known = self._known
        spans: dict[str, tuple[int, float, int | None]] = {}  # whose the last slices were
        for _, device, one in slices:
            kind, end = one.kind, one.end
            if kind == "untraced" or end is None:
                continue
            kernel = known.get((device, one.stream, one.name, kind)) or self.find(device, one)
            if one.lost:
                kernel.lost += 1
            else:
                took = max(0.0, end - one.start)
                kernel.calls += 1
                kernel.total += took
                kernel.longest = max(kernel.longest, took)
                kernel.last = max(kernel.last, end)
            first, after, cell = spans.get(device, _NOBODYS)
            if not first <= one.seq < after and device in senders:
                first, after, cell = spans[device] = senders[device].span_of(one.seq)
            if cell is not None and cell not in kernel.cells:
                kernel.sent_by(cell)

    def _note_cell(self, kernel: Kernel, senders: Senders | None, seq: int) -> None:
        cell = None if senders is None else senders.cell_of(seq)
        if cell is not None and cell not in kernel.cells:
            kernel.sent_by(cell)

    def listed(self, most: int) -> tuple[list[Kernel], Rest | None]:
        """Return the kernels that took the most time, as first seen, and the others together."""
        if len(self.kernels) <= most:
            return self.kernels, None
        by_total = sorted(self.kernels, key=attrgetter("total"), reverse=True)
        chosen, others = set(map(id, by_total[:most])), by_total[most:]
        rest = Rest(
            len(others),
            sum(one.calls for one in others),
            sum(one.total for one in others),
            max(one.longest for one in others),
            max(one.last for one in others),
            sum(one.lost for one in others),
        )
        return [one for one in self.kernels if id(one) in chosen], rest


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of consecutive numbers."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


_tallies: weakref.WeakKeyDictionary[Scene, KernelTally] = weakref.WeakKeyDictionary()


def kernel_tally(scene: Scene) -> KernelTally:
    """Return what is counted of a scene up to now; for whoever may read the scene."""
    found = _tallies.get(scene)
    if found is None or found.seen > scene.traced:
        found = _tallies[scene] = KernelTally()
    found.follow(scene)
    return found
