"""A few labelled lines, as text and as a table in a notebook."""

from collections.abc import Iterable
from html import escape

Labelled = Iterable[tuple[str, str]]


def as_text(title: str, lines: Labelled, width: int) -> str:
    """Return the title, and the lines with their labels `width` characters wide."""
    return "\n".join((title, *(f"  {what + ':':<{width}} {text}" for what, text in lines)))


def as_html(title: str, lines: Labelled) -> str:
    """Return a plain semantic table."""
    rows = "".join(
        f'<tr><th scope="row">{escape(what)}</th><td>{escape(text)}</td></tr>'
        for what, text in lines
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
