"""The device tree: every actor of a system, live in a notebook, and as text and a table elsewhere.

`state_of` folds a snapshot into what `widgets/tree/tree.js` draws; `text` and `html` draw the same
without a browser.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, NamedTuple

from accel_lab.compute.events.tree import Node
from accel_lab.display.counts import counted
from accel_lab.display.sizes import memory
from accel_lab.display.table import as_html, as_text, shortened
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene, Topic
from accel_lab.views.widget.load import Load, Stream, loads
from accel_lab.views.widget.long_work import long_work, whole_seconds
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

GLYPHS = {
    "starting": "◌",
    "running": "●",
    "busy": "▶",
    "idle": "○",
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
_SHORT = ("Actor", "State", "Gen", "Mailbox", "In flight", "Memory", "Restarts")
_NUMBERS = {"Mailbox", "In flight", "Restarts"}
WIDTH = 80
FOLDED = 3
"""So many library actors at rest are one row; `tree/rows.js` agrees."""
_WHOLE = 10
COUNTED: tuple[Topic, ...] = ("mailbox", "in flight", "restarts")
"""The columns of which a moment in the past may not tell."""


def state_of(
    node: Node | None,
    *,
    closed: bool = False,
    long: Mapping[tuple[str, str], str] | None = None,
    loads: Mapping[Stream, Load] | None = None,
) -> State:
    """Fold a snapshot into plain JSON values: `{"root": …, "closed": …}`.

    An actor is a dict of its fields; what is zero, empty or absent is left out, and the path too,
    because it follows from the names. `long` says by device and stream what runs there for long,
    `loads` what was done there in the last second: `rate` messages a second, `busy` of the time.
    """
    if node is None:
        return {"root": None, "closed": closed}
    return {"root": _actor(node, _Seen(long or {}, loads or {})), "closed": closed}


def text(state: State) -> str:
    """Draw a state as aligned columns of text, 80 characters wide, and the details below them."""
    if state["root"] is None:
        return _caption(state)
    rows = list(_rows(state))
    lines = as_text(_SHORT, ((row.label, *row.cells[:-1]) for row in rows), _NUMBERS)
    if (over := max(map(len, lines)) - WIDTH) > 0:
        room = max(map(len, (row.label for row in rows))) - over
        cut = ((shortened(row.label, max(8, room)), *row.cells[:-1]) for row in rows)
        lines = as_text(_SHORT, cut, _NUMBERS)
    told = [f"{row.path}: {row.cells[-1]}" for row in rows if row.cells[-1] and row.kind != "idle"]
    return "\n".join((_caption(state), *lines, *(shortened(line, WIDTH) for line in told)))


def html(state: State) -> str:
    """Draw a state as one table: a caption, a row group a device, a header cell a row.

    It carries no style and no script, so every page that shows notebooks shows it; and pages align
    cells as they like, so a row is headed by its path, not by a drawn branch.
    """
    groups: list[list[tuple[str, ...]]] = []
    for row in _rows(state):
        if not groups or row.kind == "device":
            groups.append([])
        groups[-1].append((row.path, *row.cells))
    return as_html(_caption(state), _COLUMNS, *groups, unbroken=_COLUMNS[1:-1])


class TreeView(View):
    """The device tree of a system."""

    name = "tree"
    wants: ClassVar[frozenset[Want]] = frozenset({"work"})

    def fold(self, scene: Scene) -> State:
        """Fold the newest tree; what has been running for a second or more is named."""
        long = {
            (device, one.stream): f"▶ {one.name} #{one.seq} running for {whole_seconds(seconds)}"
            for device, one, seconds in reversed(long_work(scene, self.source))
        }
        done = {} if scene.closed else loads(scene, self.source)
        state = state_of(scene.tree, closed=scene.closed, long=long, loads=done)
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
    When the lab closes, the widget keeps its last state and says so. Of each actor it says whether
    it is busy or idle; while its work is traced, which a look begins, also how many messages it did
    in the last second, and for which share of it it was at work. Library actors that are idle are
    one row.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(TreeView, lab, rate_hz=rate_hz)


class _Seen(NamedTuple):
    """What is known of the work of streams, by device and stream."""

    long: Mapping[tuple[str, str], str]
    loads: Mapping[Stream, Load]


def _actor(node: Node, seen: _Seen, device: str = "") -> State:
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
    if seen.long or seen.loads:
        actor |= _work(seen, kind, device, node.name)
    if node.children:
        actor["children"] = [_actor(child, seen, device) for child in node.children]
    return actor


def _work(seen: _Seen, kind: str, device: str, name: str) -> State:
    """Say what an actor runs for long, and did in the last second.

    The system did what its devices did.
    """
    told: State = {}
    if kind == "library" and (running := seen.long.get((device, name))):
        told["running"] = running
    if kind == "system":
        rate = sum(load.rate for (_, stream), load in seen.loads.items() if not stream)
        return {"rate": _digits(rate)} if rate else {}
    load = seen.loads.get((device, name if kind == "library" else ""))
    if kind == "actor" or load is None:
        return told
    if load.rate:
        told["rate"] = _digits(load.rate)
    if load.busy:
        told["busy"] = max(0.01, round(load.busy, 2))
    return told


def _digits(rate: float) -> float:
    """Round to what is shown, so that a state that looks the same is the same."""
    return round(rate) if rate >= _WHOLE else max(0.1, round(rate, 1))


def _caption(state: State) -> str:
    root, ending = state["root"], " (closed)" if state["closed"] else ""
    if root is None:
        return f"No actors{ending}"
    devices = sum(child["kind"] == "device" for child in root.get("children", ()))
    lacking = list(state.get("unrecorded", ()))
    note = f"; not recorded: {', '.join(lacking)}" if lacking else ""
    return f"{root['name']}: {counted(devices, 'device')}{note}{ending}"


class _Row(NamedTuple):
    kind: str
    path: str  # below the root
    label: str  # the name, below its parent's
    cells: tuple[str, ...]


def _rows(state: State) -> Iterator[_Row]:
    """Yield every actor, parents first; library actors at rest are one row."""
    if (root := state["root"]) is not None:
        lacking = state.get("unrecorded", {})
        yield _Row(root["kind"], root["name"], root["name"], _cells(root, lacking))
        yield from _below(root, "", "", lacking)


def _below(actor: State, path: str, indent: str, lacking: Collection[str]) -> Iterator[_Row]:
    children = actor.get("children", [])
    quiet = [child for child in children if _is_quiet(child, lacking)]
    folded = quiet if len(quiet) >= FOLDED else []
    listed = [child for child in children if child not in folded]
    for child in listed:
        is_last = child is listed[-1] and not folded
        branch, further = ("└ ", "  ") if is_last else ("├ ", "│ ")
        here = f"{path}{child['name']}"
        yield _Row(child["kind"], here, f"{indent}{branch}{child['name']}", _cells(child, lacking))
        yield from _below(child, f"{here}/", indent + further, lacking)
    if folded:
        yield _folded(folded, path, indent, lacking)


def _folded(actors: list[State], path: str, indent: str, lacking: Collection[str]) -> _Row:
    words = {_does(actor, lacking) for actor in actors}
    word = words.pop() if len(words) == 1 else ""
    few = f"{len(actors)} {word or 'more'}"
    blank = ("",) * (len(_COLUMNS) - 3)
    glyph = f"{GLYPHS.get(word, '?')} {word}" if word else ""
    names = ", ".join(actor["name"] for actor in actors)
    return _Row("idle", f"{path}{few}", f"{indent}└ {few}", (glyph, *blank, names))


def _is_quiet(actor: State, lacking: Collection[str]) -> bool:
    """Whether nobody misses a library actor's row."""
    at_rest = ("idle", "running", "stopped", "not recorded")
    return (
        actor["kind"] == "library"
        and not actor.get("restarts")
        and _does(actor, lacking) in at_rest
    )


def _does(actor: State, lacking: Collection[str]) -> str:
    """Return its state, and of what is running whether it is busy or idle, where that is known.

    Who has a busy actor below is busy, too.
    """
    state: str = actor["state"]
    if state != "running":
        return state
    if any(actor.get(what) for what in ("in_flight", "mailbox", "running", "rate", "busy")):
        return "busy"
    if any(_does(child, lacking) == "busy" for child in actor.get("children", ())):
        return "busy"
    return "running" if {"mailbox", "in flight"} & set(lacking) else "idle"


def _cells(actor: State, lacking: Collection[str]) -> tuple[str, ...]:
    """What stands in each column after the name; what is not recorded is no zero."""

    def number(topic: str) -> str:
        found: int = actor.get(topic.replace(" ", "_"), 0)
        return UNKNOWN if not found and topic in lacking else str(found)

    does = _does(actor, lacking)
    rate = f"{actor['rate']:g} messages/s" if "rate" in actor else ""
    busy = f"{100 * actor['busy']:.0f} % busy" if "busy" in actor else ""
    return (
        f"{GLYPHS.get(does, '?')} {does}",
        f"g{actor['generation']}" if "generation" in actor else "",
        number("mailbox"),
        number("in flight"),
        memory(actor.get("used_bytes"), actor.get("total_bytes")),
        number("restarts"),
        " · ".join(filter(None, (actor.get("running"), rate, busy, actor.get("detail")))),
    )
