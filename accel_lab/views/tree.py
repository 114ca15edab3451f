"""The device tree: every actor of a system, live in a notebook, and as text and a table elsewhere.

`state_of` folds a snapshot into what `widgets/tree/tree.js` draws; `text` and `html` draw the same
without a browser.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from accel_lab.compute.events.tree import HEADS, NUMBERS, Node
from accel_lab.display.counts import counted
from accel_lab.display.sizes import memory
from accel_lab.display.table import as_html, as_tree
from accel_lab.views.scene.observer import Lab, Source
from accel_lab.views.scene.scene import Scene, Topic
from accel_lab.views.widget.long_work import long_work, whole_seconds
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

GLYPHS = {
    "starting": "◌",
    "running": "●",
    "suspended": "☾",
    "restarting": "↻",
    "half-open": "◐",
    "circuit open": "⊗",
    "stopped": "■",
    "not recorded": "…",
}
UNKNOWN = "–"  # noqa: RUF001 - as tables write that there is no figure
"""What stands where a moment in the past does not say how many."""
_COLUMNS = ("Actor", "State", "Generation", "Mailbox", "In flight", "Memory", "Restarts", "Detail")
COUNTED: tuple[Topic, ...] = ("mailbox", "in flight", "restarts")
"""The columns of which a moment in the past may not tell."""


def state_of(
    node: Node | None, *, closed: bool = False, long: Mapping[tuple[str, str], str] | None = None
) -> State:
    """Fold a snapshot into plain JSON values: `{"root": …, "closed": …}`.

    An actor is a dict of its fields; what is zero, empty or absent is left out, and the path too,
    because it follows from the names. `long` says by device and stream what runs there for long.
    """
    return {"root": None if node is None else _actor(node, long or {}), "closed": closed}


def text(state: State) -> str:
    """Draw a state as aligned columns of text, the details of an actor below it."""
    if state["root"] is None:
        return _caption(state)
    rows = ((row.branch, row.actor["name"], *row.cells) for row in _rows(state))
    return "\n".join((_caption(state), *as_tree(HEADS, rows, NUMBERS)))


def html(state: State) -> str:
    """Draw a state as one table: a caption, a row group a device, a header cell a row.

    It carries no style and no script, so every page that shows notebooks shows it; and pages align
    cells as they like, so a row is headed by its path, not by a drawn branch.
    """
    groups: list[list[tuple[str, ...]]] = []
    for row in _rows(state):
        if not groups or row.actor["kind"] == "device":
            groups.append([])
        groups[-1].append((row.path, *row.cells))
    return as_html(_caption(state), _COLUMNS, *groups, unbroken=_COLUMNS[1:-1])


class TreeView(View):
    """The device tree of a system."""

    name = "tree"

    def fold(self, scene: Scene) -> State:
        """Fold the newest tree; what has been running for a second or more is named."""
        long = {
            (device, one.stream): f"▶ {one.name} #{one.seq} running for {whole_seconds(seconds)}"
            for device, one, seconds in reversed(long_work(scene, self.source))
        }
        state = state_of(scene.tree, closed=scene.closed, long=long)
        if lacking := {
            topic: scene.unrecorded[topic] for topic in COUNTED if topic in scene.unrecorded
        }:
            state["unrecorded"] = lacking
        return state

    def text(self, state: State) -> str:
        """Draw it as aligned columns."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as one table."""
        return html(state)


def tree(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> TreeView:
    """Return the device tree of a system; display it as the last value of a cell.

    In a Jupyter kernel with the `lab` extra it is a widget that updates while a cell runs and that
    may be shown any number of times: a lab has one. Elsewhere it is drawn once, as text or a table.
    When the lab closes, the widget keeps its last state and says so.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(TreeView, lab, rate_hz=rate_hz)


def _actor(node: Node, long: Mapping[tuple[str, str], str], device: str = "") -> State:
    kind = node.kind
    device = node.name if kind == "device" else device
    actor: State = {"name": node.name, "kind": kind, "state": node.state}
    # Written out: of a dozen actors a view asks this ten times a second, while others compute.
    if node.generation is not None:
        actor["generation"] = node.generation
    if node.used_bytes is not None:
        actor["used_bytes"] = node.used_bytes
    if node.total_bytes is not None:
        actor["total_bytes"] = node.total_bytes
    if node.mailbox:
        actor["mailbox"] = node.mailbox
    if node.in_flight:
        actor["in_flight"] = node.in_flight
    if node.restarts:
        actor["restarts"] = node.restarts
    if node.detail:
        actor["detail"] = node.detail
    if long and kind == "library" and (running := long.get((device, node.name))):
        actor["running"] = running
    if node.children:
        actor["children"] = [_actor(child, long, device) for child in node.children]
    return actor


def _caption(state: State) -> str:
    root, ending = state["root"], " (closed)" if state["closed"] else ""
    if root is None:
        return f"No actors{ending}"
    devices = sum(row.actor["kind"] == "device" for row in _rows(state))
    lacking = list(state.get("unrecorded", ()))
    note = f"; not recorded: {', '.join(lacking)}" if lacking else ""
    return f"{root['name']}: {counted(devices, 'device')}{note}{ending}"


class _Row(NamedTuple):
    actor: State
    path: str  # below the root
    branch: str  # what is drawn before the name
    cells: tuple[str, ...]


def _rows(state: State) -> Iterator[_Row]:
    """Yield every actor, parents first."""
    if (root := state["root"]) is not None:
        lacking = state.get("unrecorded", {})
        yield _Row(root, root["name"], "", _cells(root, lacking))
        yield from _below(root, "", "", lacking)


def _below(actor: State, path: str, indent: str, lacking: Collection[str]) -> Iterator[_Row]:
    children = actor.get("children", [])
    for child in children:
        branch, further = ("└─ ", "   ") if child is children[-1] else ("├─ ", "│  ")
        here = f"{path}{child['name']}"
        yield _Row(child, here, indent + branch, _cells(child, lacking))
        yield from _below(child, f"{here}/", indent + further, lacking)


def _cells(actor: State, lacking: Collection[str]) -> tuple[str, ...]:
    """What stands in each column after the name; what is not recorded is no zero."""

    def number(topic: str) -> str:
        found: int = actor.get(topic.replace(" ", "_"), 0)
        return UNKNOWN if not found and topic in lacking else str(found)

    return (
        f"{GLYPHS.get(actor['state'], '?')} {actor['state']}",
        f"g{actor['generation']}" if "generation" in actor else "",
        number("mailbox"),
        number("in flight"),
        memory(actor.get("used_bytes"), actor.get("total_bytes")),
        number("restarts"),
        " · ".join(filter(None, (actor.get("running"), actor.get("detail")))),
    )
