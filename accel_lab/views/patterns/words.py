"""The patterns view as lines of text and as semantic tables."""

from collections.abc import Iterator

from accel_lab.display.clock import time_of_day
from accel_lab.display.table import as_html, as_text, folded
from accel_lab.views.patterns.state import ENDS
from accel_lab.views.widget.view import State

DECISIONS = ("Time", "Decision", "Requests", "Why")
COLUMNS = {
    "word": "State",
    "waiting": "Waiting",
    "running": "Running",
    "done": "Done",
    "failed": "Failed",
    "detail": "Detail",
}
NUMBERS = {"Waiting", "Running", "Done", "Failed"}
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def text(state: State) -> str:
    """Draw a state as aligned lines, a paragraph a pattern."""
    lines = [_caption(state)]
    for one in state["patterns"]:
        lines += ["", *_paragraph(one)]
    return "\n".join(lines)


def html(state: State) -> str:
    """Draw a state as tables: of each pattern its parts and its newest decisions."""
    if not state["patterns"]:
        return f"<p>{_caption(state)}</p>"
    tables = []
    for one in state["patterns"]:
        rows = [(what, value) for what, value in figures(one)]
        tables.append(as_html(headline(one), ("What", "Value"), rows))
        if "parts" in one:
            caption = f"{one['name']}: {one['noun']}s"
            tables.append(as_html(caption, *_parts(one)))
        if "decisions" in one:
            caption = f"{one['name']}: newest decisions"
            tables.append(as_html(caption, DECISIONS, _decisions(one)))
    return f"<p>{_caption(state)}</p>" + "".join(tables)


def headline(one: State) -> str:
    """Say what a pattern is, in a line."""
    return f"{one['name']}: {one['kind']}, {one['state']}"


def figures(one: State) -> Iterator[tuple[str, str]]:
    """Yield what is counted and timed, in words."""
    for what in ("waiting", "running", "answered", *ENDS, "calls"):
        if what in one:
            yield what, f"{one[what]:,}"
    for name, what in (("size", "a call"), ("reruns", "reruns"), ("p50", "p50"), ("p99", "p99")):
        if name in one:
            yield what, str(one[name])
    for what, value in one.get("more", ()):
        yield what, value


def _paragraph(one: State) -> Iterator[str]:
    yield headline(one)
    yield from folded("  " + ", ".join(f"{what} {value}" for what, value in figures(one)), "  ")
    if "parts" in one:
        yield from (f"  {line}" for line in as_text(*_parts(one), NUMBERS))
    for at, what, of, why in _decisions(one):
        yield from folded(f"  {at} {what}{f' {of}' if of else ''}: {why}", "    ")


def _parts(one: State) -> Table:
    """Return the heads and the rows of the parts, without what none of them has."""
    shown = [what for what in COLUMNS if any(what in part for part in one["parts"])]
    counts = {"waiting", "running", "done", "failed"}
    rows = [
        (
            part["name"],
            *(f"{part.get(what, 0):,}" if what in counts else part.get(what, "") for what in shown),
        )
        for part in one["parts"]
    ]
    if "unlisted" in one:
        rows.append((f"and {one['unlisted']} more", *[""] * len(shown)))
    return (one["noun"].capitalize(), *(COLUMNS[what] for what in shown)), rows


def _decisions(one: State) -> Iterator[tuple[str, ...]]:
    for told in one.get("decisions", ()):
        yield time_of_day(told["at"]), told["what"], told.get("of", ""), told["why"]


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    title = f"{state['lab'] or 'patterns'}: patterns{ending}"
    return title if state["patterns"] else f"{title}, none was made"
