"""Rows under named columns, as aligned text and as a table in a notebook."""

from collections.abc import Collection, Iterable, Sequence
from html import escape

LONGEST = 64
"""How many characters of a cell are drawn as text, where a sentence may stand."""


def shortened(text: str, limit: int = LONGEST) -> str:
    """Return a cell that does not break the columns: the end of a long text is left out."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def as_text(
    columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = ()
) -> list[str]:
    """Return a line for the heads and one for each row; the columns of `numbers` end aligned."""
    lines = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if name in numbers else cell.ljust(width)
            for cell, width, name in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    ]


def as_html(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    total: Sequence[str] | None = None,
) -> str:
    """Return a plain semantic table; the first cell of a row is its head."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    foot = "" if total is None else f"<tfoot>{_row(total)}</tfoot>"
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(map(_row, rows))}</tbody>{foot}</table>"
    )


def _row(cells: Sequence[str]) -> str:
    head, *rest = cells
    line = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
    return f'<tr><th scope="row">{escape(head)}</th>{line}</tr>'
