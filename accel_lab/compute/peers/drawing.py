"""A topology as text, and as a table in a notebook whose cells are the darker the faster.

The colour lies over the page's own, which may be dark or light, and lets the page's text be read
on it. Every number stands there as text too, for those who do not see the colour.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple, Protocol

from accel_lab.compute.peers.link import Link
from accel_lab.compute.transfer.ways import Taken
from accel_lab.display import table
from accel_lab.display.sizes import size

STRONGEST = 0.45
"""How much of the colour the fastest cell has: text is read on it, light or dark."""
_COLOUR = "56, 132, 244"
_HEAD = "from \\ to"
_CELL = "text-align: center; padding: 4px 10px"


class Measured(Protocol):
    """What was measured from one device to another."""

    @property
    def gb_per_s(self) -> float:
        """The speed."""

    @property
    def nbytes(self) -> int:
        """How large the copies were."""

    @property
    def stale(self) -> bool:
        """Whether it is of a context that is no more."""


class Cell(NamedTuple):
    """What is known from one device to another."""

    link: Link
    figure: Measured | None

    @property
    def text(self) -> str:
        """All of it in words."""
        return ", ".join(filter(None, (self.link.text, self.speed)))

    @property
    def speed(self) -> str:
        """It in words; empty where nothing was measured."""
        if self.figure is None:
            return ""
        stale = " (stale)" if self.figure.stale else ""
        return f"{self.figure.gb_per_s:.3g} GB/s{stale}"


Cells = Mapping[tuple[str, str], Cell]


def text(
    names: Sequence[str],
    cells: Cells,
    islands: Sequence[Sequence[str]],
    copies: Sequence[Taken],
) -> str:
    """Return a line for each device, and what there is to say below them."""
    rows = []
    for a in names:
        row = [a]
        for b in names:
            cell = cells.get((a, b))
            row.append("-" if cell is None else cell.text)
        rows.append(row)
    lines = table.as_text((_HEAD, *names), rows)
    return "\n".join((*lines, *_notes(cells, islands, copies)))


def html(
    names: Sequence[str],
    cells: Cells,
    islands: Sequence[Sequence[str]],
    copies: Sequence[Taken],
) -> str:
    """Return the same as a table, whose cells are coloured by the speed."""
    fastest = max([cell.figure.gb_per_s for cell in cells.values() if cell.figure], default=0.0)
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = []
    for a in names:
        row = "".join(_drawn(a, b, cells.get((a, b)), fastest) for b in names)
        rows.append(f'<tr><th scope="row">{escape(a)}</th>{row}</tr>')
    notes = "".join(f"<div>{escape(note)}</div>" for note in _notes(cells, islands, copies))
    return (
        f"<table><caption>Peers: from the device of the row to that of the column</caption>"
        f'<thead><tr><th scope="col">{escape(_HEAD)}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{notes}"
    )


def _drawn(a: str, b: str, cell: Cell | None, fastest: float) -> str:
    if cell is None:
        return f'<td style="{_CELL}" aria-label="the same device">-</td>'
    figure, style = cell.figure, _CELL
    if figure is not None and fastest:
        share = STRONGEST * figure.gb_per_s / fastest
        style += f"; background-color: rgba({_COLOUR}, {share:.2f})"
        if figure.stale:
            style += "; font-style: italic"
    said = "<br>".join(map(escape, filter(None, (cell.speed, cell.link.text))))
    return f'<td style="{style}" title="{escape(f"{a} to {b}: {cell.text}")}">{said}</td>'


def _notes(cells: Cells, islands: Sequence[Sequence[str]], copies: Sequence[Taken]) -> list[str]:
    """Say what the cells do not."""
    notes = []
    if cells:
        groups = "; ".join(", ".join(island) for island in islands)
        notes.append(f"{len(islands)} island{'s' if len(islands) != 1 else ''}: {groups}")
    nodes = sorted({n for cell in cells.values() for n in cell.link.numa if n is not None})
    if nodes:
        notes.append(f"NUMA node{'s' if len(nodes) != 1 else ''}: {', '.join(map(str, nodes))}")
    sizes = sorted({cell.figure.nbytes for cell in cells.values() if cell.figure})
    if sizes:
        notes.append(f"measured with {' and '.join(map(size, sizes))}, by the wall clock")
    elif cells:
        notes.append("not measured: lab.topology.measure() copies between all of them")
    if any(cell.figure is not None and cell.figure.stale for cell in cells.values()):
        notes.append("stale figures are of a context that is no more: measure(anew=False)")
    for one in copies:
        plural = "copy" if one.copies == 1 else "copies"
        sent = f"{one.copies:,} {plural}, {size(one.nbytes)}"
        notes.append(f"{one.source} to {one.target}: {sent}, by {one.way}")
    return notes
