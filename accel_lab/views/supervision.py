"""The supervision feed: every fault and what was decided about it, live and as text and a table.

`scene/incidents.py` pairs facts into incidents; here they become rows, of which the newest are
kept.
"""

import json
import sys
from collections.abc import Iterable
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar, cast

from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.fault import FAULTS, Fault
from accel_lab.display.clock import time_of_day
from accel_lab.display.counts import counted
from accel_lab.display.table import as_html, as_text, in_one_line, shortened
from accel_lab.errors import ContextLost, InvalidArgument, LibraryError, OutOfMemory, SystemClosed
from accel_lab.views.scene.incidents import Incident, duration, incidents
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

if TYPE_CHECKING:
    from accel_lab.system import System

ROOM = {"fault": 24_000, "note": 6_000}
"""How many bytes of JSON the rows of a level may take; older ones are counted."""
STEPS = 16
LINE = 240
HANG_S = 2.0
EXPECTED = (ContextLost, LibraryError, OutOfMemory)

GLYPHS = {
    "recovering": "↻",
    "recovered": "●",
    "circuit open": "⊗",
    "restarted": "●",
    "failed": "▲",
    "started": "○",
    "suspended": "☾",
    "stopped": "■",
    "ended": "■",
}
_COLUMNS = ("Time", "Outcome", "Actor", "What", "Cause", "Decision", "Generation", "Recovery")
_LINE = ("Time", "Outcome", "Actor", "Generation", "Recovery")
WIDTH = 80
_SHORT = {*_COLUMNS} - {"Cause", "Decision"}


class SupervisionView(View):
    """The faults and decisions of a system."""

    name = "supervision"
    wants: ClassVar[frozenset[Want]] = frozenset({"memory"})  # to say what a fault would cost

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._folded: tuple[Scene, object, State] | None = None
        self._asked: dict[Reply[None], tuple[str, Fault]] = {}  # the faults that are to come

    def fold(self, scene: Scene) -> State:
        """Fold the facts into rows, the oldest first."""
        nodes = () if scene.tree is None else scene.tree.children
        devices = [
            (node.name, node.state, _arrays(scene, node.name))
            for node in nodes
            if node.kind == "device"
        ]
        asked = tuple(self._asked.values())
        mark = (scene.counted, scene.closed, devices, self.source.lab is None, asked)
        if self._folded is None or self._folded[0] is not scene or self._folded[1] != mark:
            self._folded = scene, mark, self._state(scene, devices)
        return self._folded[2]

    def _state(self, scene: Scene, devices: list[tuple[str, Any, int]]) -> State:
        found = incidents(scene.facts, [name for name, *_ in devices])
        state = state_of(found, forgotten=scene.counted - len(scene.facts), closed=scene.closed)
        state["lab"] = "" if scene.tree is None else scene.tree.name
        state["devices"] = [
            {"name": name, "state": word} | ({"arrays": arrays} if arrays >= 0 else {})
            for name, word, arrays in devices
        ]
        lab = self.source.lab
        if lab is not None and not scene.closed:
            state["acts"] = True
            state["faults"] = list(FAULTS)
            if getattr(lab, "recover", "replay") == "stale":
                state["stale"] = True
            if asked := list(self._asked.values()):
                state["asked"] = [f"{fault} on {device}" for device, fault in asked]
        return state

    def text(self, state: State) -> str:
        """Draw it as aligned columns."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as one table."""
        return html(state)

    def do_inject(self, device: str, fault: Fault) -> None:
        """Cause a fault on a device; does not wait for what comes of it.

        A `hang` has its context replaced after 2 s. The failure that was asked for is not printed.

        Raises:
            InvalidArgument: no such device or fault.
            SystemClosed: there is no system to act upon.
        """
        reply = self._system().inject(fault, device, timeout_s=HANG_S if fault == "hang" else None)
        self._asked[reply] = device, fault
        reply.add_waiter(partial(self._answered, reply))

    def _answered(self, reply: Reply[None]) -> None:
        """Say what else than the fault became of a request; whichever thread completes it."""
        device, fault = self._asked.pop(reply, ("", ""))
        error = reply.error
        if device and error is not None and not isinstance(error, (*EXPECTED, SystemClosed)):
            sys.stderr.write(f"inject {fault} on {device}: {type(error).__name__}: {error}\n")

    def do_reset(self, device: str) -> None:
        """Close a device's open circuit: try a context on probation; does not wait for it.

        Raises:
            InvalidArgument: no such device.
            SystemClosed: there is no system to act upon.
        """
        self._system().device(device).reset()

    def _system(self) -> "System":
        lab = self.source.lab
        if lab is None:
            raise SystemClosed("there is no system to act upon")
        if not hasattr(lab, "inject"):
            raise InvalidArgument(f"{lab.name} is only looked at")
        return cast("System", lab)


def supervision(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> SupervisionView:
    """Return the feed of a system's faults and what was decided; display it at the end of a cell.

    Each incident is one row: when, whom it concerns, what happened and why, what supervision did,
    the generation that was lost and the next, and how long it took to be whole again. In a Jupyter
    kernel with the `lab` extra it is a widget, with buttons that cause faults and reset circuits.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(SupervisionView, lab, rate_hz=rate_hz)


def _arrays(scene: Scene, device: str) -> int:
    """Return how many arrays a device has, workspaces not counted; -1 where that was not seen."""
    sample = scene.memory.get(device)
    if sample is None:
        return -1
    return sample.unlisted + sum(block.ids[0] > 0 for block in sample.blocks)


def state_of(found: Iterable[Incident], *, forgotten: int = 0, closed: bool = False) -> State:
    """Fold incidents into plain JSON values, `{"rows": …, "older": …, "closed": …}`.

    The newest rows of each level are kept, as many as there is room for; `older` counts the
    others. `forgotten` facts came before all of these.
    """
    left = dict(ROOM)
    rows: list[State] = []
    older = {"fault": 0, "note": 0}
    for incident in reversed(list(found)):
        level = incident.level
        row = _row(incident)
        left[level] -= len(json.dumps(row))
        if left[level] >= 0 and not older[level]:
            rows.append(row)
        else:
            older[level] += 1
    state: State = {"rows": rows[::-1], "closed": closed}
    if any(older.values()):
        state["older"] = {level: n for level, n in older.items() if n}
    if forgotten:
        state["forgotten"] = forgotten
    return state


def text(state: State) -> str:
    """Draw a state as aligned columns, the newest row last.

    Below each stand the cause and the decision, whole, in lines of 80 characters.
    """
    rows = state["rows"]
    told = wrap(_caption(state), WIDTH)
    if not rows:
        return "\n".join(told)
    heads, *lines = as_text(_LINE, [_line(row) for row in rows])
    told.append(heads)
    for row, line in zip(rows, lines, strict=True):
        decided = ", ".join(row.get("decisions", ()))
        said = [f"{row['what']}: {cause}" if (cause := _cause(row)) else row["what"]]
        said += [f"decision: {decided}"] if decided else []
        told.append(line)
        for one in said:
            told += wrap(one, WIDTH, initial_indent="    ", subsequent_indent="      ")
    return "\n".join(told)


def _line(row: State) -> tuple[str, ...]:
    """Return what stands in the first line of a row."""
    at, outcome, path, _, _, _, generations, took = _cells(row)
    return at, outcome, shortened(path.replace("/context/", "/"), 24), generations, took


def html(state: State, style: str = "") -> str:
    """Draw a state as one table with a caption; without style, unless one is given for all cells.

    What is of one word or two stays in one line.
    """
    groups = [map(_cells, state["rows"])] if state["rows"] else []
    return as_html(_caption(state), _COLUMNS, *groups, unbroken=_SHORT, style=style)


def _row(incident: Incident) -> State:
    """Write an incident as plain values; what is empty is left out."""
    row: State = {
        "n": incident.number,
        "at": incident.at,
        "path": incident.path,
        "level": incident.level,
        "what": incident.what,
        "outcome": incident.outcome,
    }
    optional = {
        "device": incident.device,
        "cause": in_one_line(incident.cause, LINE),
        "code": incident.code,
        "name": incident.name,
        "decisions": incident.decisions[-STEPS:],
    }
    row |= {name: value for name, value in optional.items() if value}
    numbers = {"before": incident.before, "after": incident.after}
    row |= {name: value for name, value in numbers.items() if value is not None}
    if incident.recovery_s is not None:
        row["took"] = duration(incident.recovery_s)
    # The first say how it began, the last how it stands.
    steps = incident.steps
    if (more := len(steps) - STEPS) > 0:
        steps = [*steps[: STEPS // 2], *steps[-STEPS // 2 :]]
        row["skipped"] = more
    row["steps"] = [[at, in_one_line(words, LINE)] for at, words in steps]
    return row


def _cells(row: State) -> tuple[str, ...]:
    """What stands in each column."""
    before, after = row.get("before"), row.get("after")
    known = [f"g{generation}" for generation in (before, after) if generation is not None]
    return (
        time_of_day(row["at"]),
        f"{GLYPHS.get(row['outcome'], '?')} {row['outcome']}",
        row["path"],
        row["what"],
        _cause(row),
        ", ".join(row.get("decisions", ())),
        " → ".join(known),
        row.get("took", ""),
    )


def _cause(row: State) -> str:
    """Put the code's or the signal's name before the reason, unless that says it."""
    name, cause = row.get("name", ""), row.get("cause", "")
    code = f"{name} ({row['code']})" if row.get("code") else name
    if not code or code in cause:
        return str(cause)
    if name in cause:
        return str(cause).replace(name, code, 1)
    return f"{code}: {cause}" if cause else code


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    faults = sum(row["level"] == "fault" for row in state["rows"])
    faults += state.get("older", {}).get("fault", 0)
    said = f"{state.get('lab') or 'supervision'}: {counted(faults, 'fault')}"
    return ". ".join((said + ending, *unshown(state)))


def unshown(state: State) -> list[str]:
    """Say in sentences without a full stop what a state does not hold."""
    older = sum(state.get("older", {}).values())
    ones = "one is" if older == 1 else "ones are"
    said = [f"{older} older {ones} not shown"] if older else []
    if forgotten := state.get("forgotten"):
        said.append(f"{forgotten} facts before that are forgotten")
    return said
