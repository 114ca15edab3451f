"""Rows under named columns, as aligned text and as a table in a notebook."""

import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from itertools import count, islice, zip_longest

LONGEST = 64
"""How many characters of a cell are drawn as text, where a sentence may stand."""


WIDTH = 80
"""How many characters a line of text has: as many as a terminal shows."""
SHORT = 17
"""How long a cell is that stays in one line where the rest leaves it room."""
BETWEEN = "  "
UNBROKEN = "\N{NO-BREAK SPACE}"
NOTE = 120
"""How many characters of a note below a row are drawn."""


class Markup(str):
    """A cell that is markup already."""

    __slots__ = ()


def within(tag: str, text: str, title: str = "") -> Markup:
    """Return a cell whose text stands in an element; `title` is shown where the mouse rests."""
    told = f' title="{escape(title)}"' if title else ""
    return Markup(f"<{tag}{told}>{escape(text)}</{tag}>")


def shortened(text: str, limit: int = LONGEST) -> str:
    """Return a cell that does not break the columns: the end of a long text is left out."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def in_one_line(text: str, limit: int = LONGEST) -> str:
    """Return a text of several lines as one, shortened."""
    return shortened(" ".join(text.split()), limit)


def aligned(rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return a line for each row; the columns whose positions are in `right` end aligned."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        BETWEEN.join(
            cell.rjust(width) if position in right else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def as_text(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Collection[str] = (),
    width: int | None = None,
) -> list[str]:
    """Return a line for the heads and one for each row; the columns of `numbers` end aligned.

    Parameters:
        width: the longest line; where the columns need more, long cells take several lines.
    """
    return [line for group in _laid_out(columns, rows, numbers, width) for line in group]


def as_tree(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Collection[str] = (),
    *,
    beside: bool = False,
) -> list[str]:
    """Return what `as_text` does for nested rows, each with its note below it.

    A row is what is drawn before its name, its name, its cells, and its note, which may be empty.

    Parameters:
        beside: whether a note stands at the end of its row where there is room.
    """
    nested = list(rows)
    named = [((branch + name).replace(" ", UNBROKEN), *cells) for branch, name, *cells, _ in nested]
    named_columns = (columns[0].replace(" ", UNBROKEN), *columns[1:])
    lines, *groups = _laid_out(named_columns, named, numbers, WIDTH)
    for (branch, *_, note), group in zip(nested, groups, strict=True):
        lines += group
        if beside and note and len(group) == 1 and len(group[0]) + len(note) + 3 <= WIDTH:
            lines[-1] += f" → {note}"
        elif note:
            indent = re.sub("[^│]", " ", branch.replace("├", "│")) + "   "
            lines += folded(indent + shortened(note, NOTE), indent)
    return [line.replace(UNBROKEN, " ") for line in lines]


def folded(line: str, indent: str = "    ", width: int = WIDTH) -> list[str]:
    """Return a line as several that are no longer than `width`, those after the first indented."""
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)


def _laid_out(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Collection[str],
    width: int | None,
) -> list[list[str]]:
    """Return the lines of the heads, and those of each row."""
    cells = [columns, *rows]
    widths = _widths(cells, sys.maxsize if width is None else width)
    groups = [list(_folded(line, widths)) for line in cells]
    right = {n for n, name in enumerate(columns) if name in numbers}
    lines = iter(aligned((line for group in groups for line in group), right))
    return [list(islice(lines, len(group))) for group in groups]


def _widths(lines: Sequence[Sequence[str]], width: int) -> list[int]:
    """Say how wide each column is: heads give way first, then long cells, and words last."""
    columns = list(zip(*lines, strict=True))
    longest = [max(map(len, column)) for column in columns]
    words = [max(map(_indivisible, column)) for column in columns]
    heads = [max(map(len, (*head.split(" "), *cells))) for head, *cells in columns]
    parts = [min(least, SHORT) for least in words]
    for floors in (heads, words, parts, [1] * len(columns)):
        while sum(longest) + len(BETWEEN) * (len(longest) - 1) > width:
            spare = [(wide, n) for n, wide in enumerate(longest) if wide > floors[n]]
            if not spare:
                break
            longest[max(spare)[1]] -= 1
    return longest


def _indivisible(cell: str) -> int:
    """Say how long the longest part of a cell is that stays in one line; a short cell does."""
    return len(cell) if len(cell) <= SHORT else max(map(len, cell.split(" ")))


def _folded(line: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Yield a row as the rows that its cells need in columns so wide."""
    if all(len(cell) <= wide for cell, wide in zip(line, widths, strict=True)):
        yield tuple(line)
        return
    parts = [
        [cell] if len(cell) <= wide else textwrap.wrap(cell, wide, break_on_hyphens=False)
        for cell, wide in zip(line, widths, strict=True)
    ]
    yield from zip_longest(*parts, fillvalue="")


def as_html(
    title: str,
    columns: Sequence[str],
    *groups: Iterable[Sequence[str]],
    total: Sequence[str] | None = None,
    head: int = 0,
    current: int | None = None,
    unbroken: Collection[str] = (),
    style: str = "",
) -> str:
    """Return a plain semantic table, of one body for each group of rows.

    Parameters:
        title: its caption; without one it has none.
        columns: their names.
        groups: rows of as many cells; a `Markup` is written as it is.
        total: the row at the foot.
        head: the position of the cell that heads its row.
        current: the number of the row that is the current one.
        unbroken: the columns whose cells stay in one line.
        style: of every cell; pages align cells as they like, and most tables leave them that.
    """
    styled = f' style="{style}"' if style else ""
    short = [name in unbroken for name in columns]
    numbers = count()

    def row(cells: Sequence[str]) -> str:
        mark = ' aria-current="true"' if next(numbers) == current else ""
        line = "".join(
            f'<th scope="row"{styled}>{cell}</th>' if n == head else f"<td{styled}>{cell}</td>"
            for n, cell in enumerate(map(_escaped, cells, short))
        )
        return f"<tr{mark}>{line}</tr>"

    caption = f"<caption{styled}>{escape(title)}</caption>" if title else ""
    heads = "".join(f'<th scope="col"{styled}>{escape(name)}</th>' for name in columns)
    bodies = "".join(f"<tbody>{''.join(map(row, rows))}</tbody>" for rows in groups)
    foot = "" if total is None else f"<tfoot>{row(total)}</tfoot>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead>{bodies}{foot}</table>"


def _escaped(cell: str, unbroken: bool) -> str:  # noqa: FBT001 - mapped over
    if isinstance(cell, Markup):
        return cell
    return escape(cell.replace(" ", UNBROKEN) if unbroken else cell)
