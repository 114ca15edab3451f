"""All rows, as a table for a terminal and as JSON for a program."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, ClassVar

import msgspec
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from accel_lab.bench.machine import Machine
from accel_lab.bench.row import Row
from accel_lab.display.printed import Printed
from accel_lab.display.table import as_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THOUSAND = 1000
MOST = 1000
"""Characters of a terminal that has room for everything."""
FIGURES = ("peer's", "ours", "ratio")
COLUMNS = ("what", *FIGURES, "peer", "budget", "met")
MET = {True: Text("✓ met", "green"), False: Text("✗ missed", "red"), None: Text("")}


class Report(Printed, msgspec.Struct, frozen=True, kw_only=True):
    """What a run of the benchmarks found.

    Attributes:
        schema: the version of this layout; it grows when a field changes its meaning or goes.
        backend: which one computed.
        quick: whether the rounds were few, so that the figures are rough.
        machine: where it was.
        rows: what was measured.
        notes: what was not, and why, for people.
    """

    width: ClassVar[int] = 160
    schema: int = 1
    backend: str
    quick: bool
    machine: Machine
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw a bar for each row that has a budget: how many times better than that it is.

        Needs Matplotlib; draws into a new figure when no axes are given.

        Raises:
            InvalidArgument: no row has a budget.
        """
        from accel_lab.bench.chart import draw

        return draw(self.rows, axes)

    def __getitem__(self, name: str) -> Row:
        """Look a row up by its name.

        Raises:
            KeyError: nothing of this name was measured.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw one line a row, and below what it was measured on.

        Where there is no room for what was done, a row has its name.
        """
        here = self.machine
        yield Text(f"accel_lab {here.accel_lab}, {self.backend} backend: {here.device}")
        anywhere = options.update(max_width=MOST)
        for table in (self._whole(), self._short(), self._short("ours", "ratio")):
            if console.measure(table, options=anywhere).maximum <= options.max_width:
                break
        yield table
        rough = "; --quick: few rounds, rough figures" if self.quick else ""
        yield Text(
            f"\nPython {here.python}, {here.system}, {here.cpu}, {here.cores} cores"
            f"{', driver ' + here.driver if here.driver else ''}{rough}"
        )
        yield Text(", ".join(f"{name} {found}" for name, found in here.libraries.items()))
        yield from map(Text, self.notes)

    def _whole(self) -> Table:
        """Return all that is known of each row, which takes a wide terminal."""
        table = _table("what", FIGURES)
        for heading in ("peer", "budget", ""):
            table.add_column(heading, no_wrap=True)
        for row in self.rows:
            table.add_row(*map(Text, _cells(row)[:-1]), MET[row.met])
        return table

    def _short(self, *figures: str) -> Table:
        """Return a table of names and figures; without the peer's it fits eighty columns."""
        figures = figures or FIGURES
        table = _table("name", figures)
        table.add_column("budget", no_wrap=True)
        for row in self.rows:
            _, *found, _, budget, _ = _cells(row)
            met = MET[row.met]
            judged = Text(f"{met.plain[:1]} {budget}".strip(), met.style)
            shown = [one for name, one in zip(FIGURES, found, strict=True) if name in figures]
            table.add_row(*map(Text, (row.name, *shown)), judged)
        return table

    def _repr_html_(self) -> str:
        """Show a plain semantic table in a notebook."""
        here = self.machine
        caption = f"accel_lab {here.accel_lab}, {self.backend} backend: {here.device}"
        if self.quick:
            caption += "; few rounds, rough figures"
        where = f"Python {here.python}, {here.system}, {here.cpu}, {here.cores} cores"
        notes = "<br>".join(map(escape, (where, *self.notes)))
        return f"{as_html(caption, COLUMNS, map(_cells, self.rows))}<p>{notes}</p>"


def _table(first: str, figures: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column(first, no_wrap=True)
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.title,
        "" if row.theirs is None else figure(row.theirs, row.unit),
        figure(row.ours, row.unit),
        "" if row.ratio is None else f"{row.ratio:.3g}",
        row.peer,
        "" if row.budget is None else str(row.budget),
        MET[row.met].plain,
    )


def figure(value: float, unit: str) -> str:
    """Write a value with its unit, as `172 k/s`, `35.2 µs`, `12.1 GiB/s`, `0.231 s`."""
    if unit == "messages/s":
        return f"{value / THOUSAND:.3g} k/s" if value >= THOUSAND else f"{value:.3g} /s"
    if unit == "µs" and value >= THOUSAND:
        return f"{value / THOUSAND:.3g} ms"
    return f"{value:.3g} {unit}"
