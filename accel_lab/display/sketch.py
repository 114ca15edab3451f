"""Two arrays of one shape beside each other, small enough to be drawn: a line, or a grid."""

from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

WIDE, HIGH = 48, 16
"""So many columns and rows a sketch has at most."""
_CELL = 9
_PLOT = 320, 84
_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#57606a}path{fill:none;stroke-width:1.6}"
    ".b{stroke:#57606a;stroke-dasharray:4 3}.a{stroke:#0b5cad}.c{fill:#0b5cad}"
    ".d{fill:none;stroke:#b3261e}.f{fill:none;stroke:#d9dee4}"
    "@media(prefers-color-scheme:dark){text{fill:#a3adb8}.b{stroke:#a3adb8}.a{stroke:#79b8ff}"
    ".c{fill:#79b8ff}.d{stroke:#ff938a}.f{stroke:#3a4149}}"
)


class Sketch(NamedTuple):
    """What is drawn of two arrays: of each part of them the element that differs most.

    Attributes:
        wide, high: how many parts; one high is a line.
        before, after: the elements, row by row; None where one is not finite.
        low, top: the least and the greatest of them.
    """

    wide: int
    high: int
    before: list[float | None]
    after: list[float | None]
    low: float
    top: float


def sketch(before: Any, after: Any) -> Sketch | None:
    """Return what is drawn of two arrays; None of those that have no picture together."""
    one, other = np.asarray(before), np.asarray(after)
    if one.shape != other.shape or one.size < 2 or not (_is_numbers(one) and _is_numbers(other)):  # noqa: PLR2004
        return None
    rows, columns = (1, one.size) if one.ndim < 2 else (one.size // one.shape[-1], one.shape[-1])  # noqa: PLR2004
    wide, high = min(columns, WIDE), min(rows, HIGH)
    first, last = one.reshape(rows, columns), other.reshape(rows, columns)
    found: list[tuple[float | None, float | None]] = []
    for top, bottom in pairwise(np.linspace(0, rows, high + 1).astype(int)):
        for left, right in pairwise(np.linspace(0, columns, wide + 1).astype(int)):
            part = slice(top, bottom), slice(left, right)
            found.append(_furthest(_real(first[part]), _real(last[part])))
    known = [value for pair in found for value in pair if value is not None]
    if not known:
        return None
    olds, news = [pair[0] for pair in found], [pair[1] for pair in found]
    return Sketch(wide, high, olds, news, min(known), max(known))


def svg(one: Sketch, before: str, after: str) -> str:
    """Draw it as an SVG file that follows the page's dark mode, with words for either array."""
    body, wide, high = (_line if one.high == 1 else _grids)(one, before, after)
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    space = "http://www.w3.org/2000/svg"
    return f'<svg xmlns="{space}" {size}><style>{_STYLE}</style>{body}</svg>'


def _line(one: Sketch, before: str, after: str) -> tuple[str, int, int]:
    wide, high = _PLOT
    scale = (high - 6) / (one.top - one.low) if one.top > one.low else 0.0

    def path(values: list[float | None]) -> str:
        told, is_down = "", False
        for at, value in enumerate(values):
            if value is not None:
                x = 3 + at * (wide - 6) / max(1, len(values) - 1)
                y = high - 3 - (value - one.low) * scale
                told += f"{'L' if is_down else 'M'}{x:.1f} {y:.1f}"
            is_down = value is not None
        return told

    words = f'<text x="3" y="{high + 14}">- - {escape(before)} &#160; — {escape(after)}</text>'
    words += f'<text x="{wide - 3}" y="{high + 14}" text-anchor="end">{_span(one)}</text>'
    lines = f'<path class="b" d="{path(one.before)}"/><path class="a" d="{path(one.after)}"/>'
    return lines + words, wide, high + 20


def _grids(one: Sketch, before: str, after: str) -> tuple[str, int, int]:
    wide, high = one.wide * _CELL, one.high * _CELL
    apart = max(wide, 150) + 14
    told = ""
    for left, words, values in ((0, before, one.before), (apart, after, one.after)):
        told += f'<text x="{left + 1}" y="12">{escape(words)}</text>'
        told += f'<rect class="f" x="{left + 0.5}" y="17.5" width="{wide}" height="{high}"/>'
        for at, value in enumerate(values):
            x, y = left + at % one.wide * _CELL, 18 + at // one.wide * _CELL
            place = f'x="{x}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}"'
            if value is not None:
                told += f'<rect class="c" {place} fill-opacity="{_share(one, value):.2f}"/>'
            if left and value != one.before[at]:
                told += f'<rect class="d" {place}/>'
    told += f'<text x="1" y="{high + 32}">{_span(one)}; outlined: differs</text>'
    return told, apart + max(wide, 150) + 2, high + 38


def _share(one: Sketch, value: float) -> float:
    return 0.08 + 0.92 * (value - one.low) / (one.top - one.low) if one.top > one.low else 0.5


def _span(one: Sketch) -> str:
    return f"{one.low:.4g} to {one.top:.4g}"


def _is_numbers(array: Any) -> bool:
    if array.dtype.kind in "biufc":
        return True
    return array.dtype.kind == "V" and array.dtype.names is None and array.dtype.isbuiltin == 2  # noqa: PLR2004


def _real(array: Any) -> Any:
    found = np.abs(array) if array.dtype.kind == "c" else array
    return found.astype(np.float64).ravel()


def _furthest(before: Any, after: Any) -> tuple[float | None, float | None]:
    """Return both elements where they are furthest apart."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(after - before)
    alike = (before == after) | (np.isnan(before) & np.isnan(after))
    apart = np.where(alike, -1.0, np.where(np.isfinite(apart), apart, np.inf))
    at = int(apart.argmax())
    return _finite(before[at]), _finite(after[at])


def _finite(value: Any) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
