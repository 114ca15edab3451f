"""Rows under named columns, as aligned text and as a table in a notebook."""

from collections.abc import Collection, Iterable, Sequence
from html import escape
from itertools import count

LONGEST = 64
"""How many characters of a cell are drawn as text, where a sentence may stand."""


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
        "  ".join(
            cell.rjust(width) if position in right else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def as_text(
    columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = ()
) -> list[str]:
    """Return a line for the heads and one for each row; the columns of `numbers` end aligned."""
    return aligned([columns, *rows], {n for n, name in enumerate(columns) if name in numbers})


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
    return escape(cell.replace(" ", "\N{NO-BREAK SPACE}") if unbroken else cell)
