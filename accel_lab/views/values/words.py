"""The values view as lines of text, and as pictures with a semantic table."""

from base64 import b64encode
from html import escape

from accel_lab.display.clock import time_of_day
from accel_lab.display.counts import counted
from accel_lab.display.table import as_html, folded
from accel_lab.views.values.picture import picture
from accel_lab.views.values.state import levels_of
from accel_lab.views.widget.view import State

BLOCKS = " ▁▂▃▄▅▆▇██"
COLUMNS = ("Name", "Device", "Array", "Looks", "Least", "Mean", "Most", "NaN", "Inf", "Last look")


def text(state: State) -> str:
    """Draw a state as lines, a paragraph a series."""
    lines = [_caption(state)]
    for one in state["series"]:
        lines += ["", *folded(headline(one))]
        lines.append(f"  histogram {histogram(one)}")
    return "\n".join(lines)


def html(state: State) -> str:
    """Draw of each series its picture, and a table of all."""
    parts = [f"<p>{escape(_caption(state))}</p>"]
    for one in state["series"]:
        data = b64encode(picture(one).encode()).decode()
        said = escape(headline(one), quote=True)
        parts.append(
            f'<figure><img alt="{said}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{said}</figcaption></figure>"
        )
    if state["series"]:
        parts.append(as_html("The newest looks", COLUMNS, map(_row, state["series"])))
    return "".join(parts)


def headline(one: State) -> str:
    """Say of a series what its newest look saw."""
    said = [f"{one['name']} on {one['device']}, {one['array']}, {counted(one['look'], 'look')}"]
    if "least" in one:
        said.append(f"{one['least']} to {one['most']}")
    else:
        said.append("no finite number")
    if "mean" in one:
        said.append(f"mean {one['mean']}")
    said += [f"{one[key]} {word}" for key, word in (("nans", "NaN"), ("infs", "Inf")) if key in one]
    return ", ".join(said)


def histogram(one: State) -> str:
    """Draw the newest histogram as characters of eight heights, from the least to the most."""
    bars = "".join(BLOCKS[int(level)] for level in levels_of(one["counts"]))
    return f"{one.get('least', '')} {bars} {one.get('most', '')}" if bars else "none"


def _row(one: State) -> tuple[str, ...]:
    numbers = (one.get(key, "") for key in ("least", "mean", "most"))
    bad = (f"{one.get(key, 0):,}" for key in ("nans", "infs"))
    named = one["name"], one["device"], one["array"], f"{one['look']:,}"
    return *named, *numbers, *bad, time_of_day(one["at"])


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    title = f"{state['lab'] or 'values'}: values{ending}"
    return title if state["series"] else f"{title}, nothing was looked at"
