"""The topology view as lines of text and as a semantic table."""

from collections.abc import Iterator
from html import escape

from accel_lab.display.counts import counted
from accel_lab.display.table import WIDTH, as_html, as_text
from accel_lab.views.widget.view import State

HEAD = "from \\ to"
SAME = "-"


def text(state: State) -> str:
    """Draw a state as an aligned table, and a line for the rest."""
    lines = [_caption(state)]
    if "rows" in state:
        lines += ["", *as_text((HEAD, *state["devices"]), _rows(state), width=WIDTH)]
    return "\n".join((*lines, *sentences(state)))


def html(state: State) -> str:
    """Draw a state as a table, and a paragraph for the rest."""
    if "rows" not in state:
        return f"<p>{escape(_caption(state))}</p>"
    table = as_html(_caption(state), (HEAD, *state["devices"]), _rows(state))
    return table + "".join(f"<p>{escape(said)}</p>" for said in sentences(state))


def sentences(state: State) -> Iterator[str]:
    """Say which devices reach each other, and what the figures are."""
    if "rows" not in state:
        return
    groups = "; ".join(", ".join(island) for island in state["islands"])
    yield f"{counted(len(state['islands']), 'island')}: {groups}"
    if "measured" in state:
        yield f"measured with {state['measured']}, by the wall clock"
    else:
        yield "not measured: lab.topology.measure() copies between all of them"
    if "stale" in state:
        yield "stale figures are of a context that is no more: measure(anew=False)"


def _rows(state: State) -> list[tuple[str, ...]]:
    named = zip(state["devices"], state["rows"], strict=True)
    return [(name, *map(_cell, row)) for name, row in named]


def _cell(cell: State | None) -> str:
    if cell is None:
        return SAME
    said = [cell["speed"]] if "speed" in cell else []
    said += ["stale"] if "stale" in cell else []
    return ", ".join((*said, cell["link"]))


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    title = f"{state['lab'] or 'topology'}: topology{ending}"
    if "rows" in state:
        return title
    if "replay" in state:
        return f"{title}, nobody looked at the links"
    return f"{title}, {'links not known yet' if state['devices'] else 'no other device'}"
