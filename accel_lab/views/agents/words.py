"""The agents view as lines of text, and as pictures with semantic tables."""

from base64 import b64encode
from collections.abc import Iterator
from html import escape

from accel_lab.display.clock import time_of_day
from accel_lab.display.table import as_html, as_text, folded
from accel_lab.views.agents.picture import picture
from accel_lab.views.patterns.state import ENDS
from accel_lab.views.widget.view import State

NODES = ("Node", "Running", "Done", "Failed", "Goes on to")
NUMBERS = {"Running", "Done", "Failed"}


def text(state: State) -> str:
    """Draw a state as aligned lines, a paragraph an agent."""
    lines = [_caption(state)]
    for one in state["agents"]:
        lines += ["", *folded(headline(one))]
        lines += [f"  {line}" for line in as_text(NODES, _nodes(one), NUMBERS)]
        lines += [f"  {line}" for line in steps(one)]
    return "\n".join(lines)


def html(state: State) -> str:
    """Draw of each agent the picture of its graph, and a table of its nodes."""
    parts = [f"<p>{escape(_caption(state))}</p>"]
    for one in state["agents"]:
        data = b64encode(picture(one).encode()).decode()
        alt = escape(f"The graph of {one['name']}; the table below it says the same", quote=True)
        said = escape(headline(one))
        parts.append(
            f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{said}</figcaption></figure>"
        )
        parts.append(as_html(f"{one['name']}: nodes", NODES, _nodes(one)))
    return "".join(parts)


def headline(one: State) -> str:
    """Say how an agent is, in a line."""
    counts = [
        f"{one[what]:,} {what}" for what in ("waiting", "running", "answered", *ENDS) if what in one
    ]
    said = f"{one['name']}: {one['state']}, {', '.join(counts)}"
    return said + (f"; p50 {one['p50']}, p99 {one['p99']}" if "p50" in one else "")


def steps(one: State) -> Iterator[str]:
    """Yield the nodes that were begun last."""
    for step in one.get("steps", ()):
        yield f"{time_of_day(step['at'])} run {step['run']} began {step['node']}"


def _nodes(one: State) -> Iterator[tuple[str, ...]]:
    onward: dict[str, list[str]] = {}
    for edge in one["edges"]:
        taken = f" ({edge['taken']:,})" if "taken" in edge else ""
        mark = "? " if "chosen" in edge else "& " if "joins" in edge else ""
        onward.setdefault(edge["from"], []).append(f"{mark}{edge['to']}{taken}")
    for node in one["nodes"]:
        counts = (f"{node.get(what, 0):,}" for what in ("running", "done", "failed"))
        yield node["name"], *counts, ", ".join(onward.get(node["name"], ()))


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    title = f"{state['lab'] or 'agents'}: agents{ending}"
    return title if state["agents"] else f"{title}, no graph was made"
