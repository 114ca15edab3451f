"""Entries of a journal, as text and as a table."""

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import SupportsIndex, get_args, overload

from accel_lab.display.clock import time_of_day
from accel_lab.display.table import as_html, as_text, as_tree, in_one_line, within
from accel_lab.errors import InvalidArgument
from accel_lab.journal.entries.entry import Entry, Kind, describe

TEXT_ROWS = 60
TABLE_ROWS = 200
TEXT_WIDTH = 68
WIDE = 140
"""From how many columns on a terminal shows an entry and its outcome side by side."""
COLUMNS = ("entry", "time", "device", "generation", "cell", "what", "what became of it")


class Lines(Sequence[Entry]):
    """Some entries in order; the last of an expression shows them in a notebook.

    What became of a message is what was known when the entries were read.

    Parameters:
        title: says of what they are, above the table.
    """

    def __init__(self, entries: Iterable[Entry], title: str = "") -> None:
        self._entries = tuple(entries)
        self.title = title

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Entry: ...
    @overload
    def __getitem__(self, index: "slice[int | None, int | None, int | None]") -> "Lines": ...
    def __getitem__(
        self, index: "SupportsIndex | slice[int | None, int | None, int | None]"
    ) -> "Entry | Lines":
        if isinstance(index, slice):
            return Lines(self._entries[index], self.title)
        return self._entries[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def filter(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        library: str | None = None,
        kind: Kind | None = None,
        cell: int | None = None,
        failed: bool | None = None,
        after: float | None = None,
        before: float | None = None,
    ) -> "Lines":
        """Return those entries that are all of this; see `Journal.filter`."""
        wanted = Wanted(device, name, library, kind, cell, after, before)
        found = [
            entry
            for entry in self._entries
            if wanted(entry) and (failed is None or entry.failed == failed)
        ]
        return Lines(found, self.title)

    def __repr__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        if self.title:
            yield self.title
        shown = self._entries[-TEXT_ROWS:]
        if len(shown) < len(self):
            yield f"the last {len(shown)} of {len(self)} entries:"
        columns: tuple[str, ...] = COLUMNS
        rows = [tuple(in_one_line(cell, TEXT_WIDTH) for cell in _cells(entry)) for entry in shown]
        width = shutil.get_terminal_size().columns
        if width < WIDE:
            columns, *rows = (("", row[0], row[2], *row[5:]) for row in (columns, *rows))
            yield from as_tree(columns[1:-1], rows, beside=True)
        else:
            yield from as_text(columns, rows, width=width)

    def _repr_html_(self) -> str:
        """Show a plain semantic table in a notebook."""
        shown = self._entries[-TABLE_ROWS:]
        title = self.title
        if len(shown) < len(self):
            title = f"{title} \N{EM DASH} the last {len(shown)} of {len(self)} entries".lstrip(" —")
        return as_html(title, COLUMNS, map(_html_row, shown))


class Wanted:
    """Whether an entry is what one looks for; what became of it aside."""

    def __init__(
        self,
        device: str | None,
        name: str | None,
        library: str | None,
        kind: Kind | None,
        cell: int | None,
        after: float | None,
        before: float | None,
    ) -> None:
        if kind is not None and kind not in get_args(Kind):
            raise InvalidArgument(f"{kind!r} is no kind; there are {', '.join(get_args(Kind))}")
        self._equal = [
            (field, value)
            for field, value in (
                ("device", device),
                ("name", name),
                ("library", library),
                ("kind", kind),
                ("cell", cell),
            )
            if value is not None
        ]
        self._after = float("-inf") if after is None else after
        self._before = float("inf") if before is None else before

    def __call__(self, entry: Entry) -> bool:
        """Say so."""
        return self._after <= entry.at < self._before and all(
            getattr(entry, field) == value for field, value in self._equal
        )


def _cells(entry: Entry) -> tuple[str, ...]:
    outcome = entry.outcome
    if entry.kind == "message" and entry.why:
        outcome = f"{outcome}; not replayable: {entry.why}"
    return (
        str(entry.number),
        time_of_day(entry.at),
        entry.device,
        str(entry.generation) if entry.device else "",
        "" if entry.cell is None else str(entry.cell),
        describe(entry),
        outcome,
    )


def _html_row(entry: Entry) -> tuple[str, ...]:
    number, clock, device, generation, cell, what, outcome = _cells(entry)
    return (
        number,
        within("time", clock, time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(entry.at))),
        device,
        generation,
        cell,
        within("code", in_one_line(what, 4 * TEXT_WIDTH)),
        within("strong", outcome) if entry.failed else outcome,
    )
