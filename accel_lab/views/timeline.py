"""The timeline: what each stream of each device ran, and when, by the device's clock.

The state says what rows, works, running slices and marks there are; the newest finished slices
travel beside it, as `Tally.pack` says.
"""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from accel_lab.display.counts import counted
from accel_lab.display.table import as_html, as_text
from accel_lab.views.chrome_trace import chrome_trace, devices_of
from accel_lab.views.past.still import Still
from accel_lab.views.scene.fault_mark import Mark, mark_of
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.strips import pack_strips
from accel_lab.views.scene.tally import Row, Tally, tally
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

CELLS = 64
"""How many of the newest cells of the notebook a state holds; a page keeps those it has seen."""
MARKED = 64
"""How many of the newest faults and generation changes a state holds."""

_COLUMNS = ("Stream", "Done", "Busy", "Longest", "Running")
_LOST = "Ended with its context"
_NUMBERS = {"Done", "Busy", "Longest"}
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_WHOLE_S = 99.95  # from here on seconds are written without a point
_UP = 0.9995  # what would be written as 1 of the unit


class TimelineView(View):
    """What the streams of a system's devices worked at."""

    name = "timeline"
    wants: ClassVar[frozenset[Want]] = frozenset({"work"})

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._marked: tuple[Scene | None, int, list[list[Any]], int] = None, 0, [], 0

    def fold(self, scene: Scene) -> State:
        """Fold what was seen of the work into plain JSON values.

        `rows` have `device`, `stream`, and of finished work `count`, `busy` and `longest` seconds;
        of what ended with its context `lost`: how many, and the last one's name and seconds; and
        `passed`, how many messages were not traced one by one.
        `works` are [row, name, kind], with a fourth value, true, for what ended with its context;
        `running` are [work, seq, start]; `marks` are [at, device, kind, text], the oldest first.
        `cells` are the newest cells of the notebook, [number, start, end, ended, line], the oldest
        first; `cells_unrecorded` says why there are none. `totals` have the memory of each device.
        `states` are those of devices that do not run. `traced` slices were numbered, `untraced`
        were never seen, `span` is from the first start to the last end. `unrecorded` says why the
        work of this moment is not known. A recording says `at`, which is its now; a part of a
        session says `of`, which part.
        """
        known = tally(scene)
        running = [
            [known.work(device, one), one.seq, one.start]
            for device, ones in scene.running.items()
            for one in ones
        ]
        marks, earlier = self._marks(scene)
        state: State = {
            "name": "" if scene.tree is None else scene.tree.name,
            "devices": _devices(scene, known),
            "rows": [_row(row) for row in known.rows],
            "works": [[*work, True] if lost else work for *work, lost in known.works],
            "running": running,
            "marks": marks,
            "traced": scene.traced,
            "untraced": sum(scene.untraced.values()),
            "closed": scene.closed,
        }
        if earlier:
            state["earlier_marks"] = earlier
        if states := _states(scene):
            state["states"] = states
        if known.span is not None:
            state["span"] = list(known.span)
        if "work" in scene.unrecorded:
            state["unrecorded"] = scene.unrecorded["work"]
        state |= _notebook(scene)
        if self.source.lab is None:
            where = getattr(self.source, "where", None)  # also before the first step
            state["at"] = scene.at or (where["at"] if where is not None else 0.0)
        if isinstance(self.source, Still):
            state["of"] = self.source.of
        return state

    def _marks(self, scene: Scene) -> tuple[list[list[Any]], int]:
        """Return the newest marks as plain values, and how many came before; facts are rare."""
        if self._marked[:2] != (scene, scene.counted):
            marks, earlier = _marks(scene)
            self._marked = scene, scene.counted, [list(mark) for mark in marks], earlier
        return self._marked[2:]

    def pack(self, scene: Scene) -> bytes:
        """Return the newest slices as columns, and behind them what `pack_strips` says."""
        known = tally(scene)
        strips = pack_strips(scene, _devices(scene, known), known.queued())
        return known.pack() + strips

    def text(self, state: State) -> str:
        """Draw a line a stream: how much it did, its share of the span, and what it is at.

        What runs has been running for as long as is written, up to now or to a recording's `at`.
        """
        rows = list(_cells(state))
        if not rows:
            return _caption(state)
        return "\n".join((_caption(state), *as_text(_columns(state), rows, _NUMBERS)))

    def html(self, state: State) -> str:
        """Draw the same as one table, each row headed by its stream."""
        return as_html(_caption(state), _columns(state), _cells(state))

    def export(self, path: str | Path) -> Path:
        """Write what is known now as a Chrome trace; returns where.

        Any thread. Perfetto and chrome://tracing open the file.

        Raises:
            OSError: it cannot be written.
        """
        with self.source.lock:
            trace = chrome_trace(self.source.look())
        path = Path(path)
        path.write_bytes(msgspec.json.encode(trace))
        return path


def timeline(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> TimelineView:
    """Return the timeline of a system's work; display it as the last value of a cell.

    Work is traced while somebody looks, so what was done before the first look is not shown. Where
    more than 500 messages come between two looks, some are traced and the others counted. In a
    Jupyter kernel with the `lab` extra it is a widget that looks all the time, while a cell runs
    too. Elsewhere each drawing, as text or a table, is a look that keeps the tracing on for two
    seconds.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(TimelineView, lab, rate_hz=rate_hz)


def duration(seconds: float) -> str:
    """Write a duration with three digits: 12.5 ms, 1 s, 340 µs; `timeline/scale.js` agrees."""
    if seconds <= 0:
        return "0 s"
    if seconds >= _WHOLE_S:
        return f"{seconds:.0f} s"
    for scale, unit in _UNITS:
        if seconds >= _UP * scale or unit == "ns":
            break
    return f"{seconds / scale:.3g} {unit}"


def _devices(scene: Scene, known: Tally) -> list[str]:
    return list(dict.fromkeys([*devices_of(scene), *(row.device for row in known.rows)]))


def _notebook(scene: Scene) -> State:
    """Return what is said of the cells and of the memory, as far as there is anything."""
    told: State = {}
    if cells := list(islice(reversed(scene.cells.values()), CELLS))[::-1]:
        told["cells"] = [[one.number, one.start, one.end, one.ended, one.line] for one in cells]
    elif "cells" in scene.unrecorded:
        told["cells_unrecorded"] = scene.unrecorded["cells"]
    if scene.levels and scene.tree is not None:
        totals = {node.name: node.total_bytes for node in scene.tree.children}
        told["totals"] = {device: totals.get(device) for device in scene.levels}
    return told


def _states(scene: Scene) -> dict[str, str]:
    """Return what the devices do that have no context at work: a row that is empty says why."""
    nodes = () if scene.tree is None or scene.closed else scene.tree.children
    return {
        node.name: node.state for node in nodes if node.kind == "device" and node.state != "running"
    }


def _marks(scene: Scene) -> tuple[list[Mark], int]:
    """Return the newest marks, the oldest first, and how many came before them."""
    found = (mark for _, fact in reversed(scene.facts) if (mark := mark_of(fact)) is not None)
    newest = list(islice(found, MARKED))
    return newest[::-1], sum(1 for _ in found)


def _caption(state: State) -> str:
    rows, span = state["rows"], state.get("span")
    name = ", ".join(filter(None, (state["name"] or "system", state.get("of"))))
    if "unrecorded" in state and not rows:
        return f"{name}: work is not recorded: {state['unrecorded']}"
    parts = [f"{name}: {counted(sum(r['count'] for r in rows), 'slice')}"]
    if span is not None:
        parts[0] += f" in {duration(span[1] - span[0])}"
    elif not state["running"]:
        parts[0] += ", no work was seen yet"
    for kind, noun in (("generation", "generation change"), ("fault", "fault")):
        if count := sum(mark[2] == kind for mark in state["marks"]):
            parts.append(counted(count, noun))
    if lost := sum(row["lost"]["count"] for row in rows if "lost" in row):
        parts.append(f"{lost} ended with {'its' if lost == 1 else 'their'} context")
    parts += [f"{device} is {what}" for device, what in state.get("states", {}).items()]
    if state["untraced"]:
        parts.append(f"{counted(state['untraced'], 'slice')} never seen")
    if "unrecorded" in state:
        parts.append(f"the rest is not recorded: {state['unrecorded']}")
    return ", ".join(parts) + (" (closed)" if state["closed"] and "of" not in state else "")


def _row(row: Row) -> State:
    told: State = {
        "device": row.device,
        "stream": row.stream,
        "count": row.count,
        "busy": round(row.busy, 9),
        "longest": round(row.longest, 9),
    }
    if row.passed:
        told["passed"] = row.passed
    if (last := row.last_lost) is not None:
        seconds = round((last.end or last.start) - last.start, 9)
        told["lost"] = {"count": row.lost, "last": f"{last.name} #{last.seq}", "seconds": seconds}
    return told


def _columns(state: State) -> tuple[str, ...]:
    return (*_COLUMNS, _LOST) if any("lost" in row for row in state["rows"]) else _COLUMNS


def _cells(state: State) -> Iterator[tuple[str, ...]]:
    """Yield what stands in each column, for every row by its device."""
    first, last = state.get("span") or (0.0, 0.0)
    now = state.get("at", time.time())
    numbered = enumerate(state["rows"])
    for number, row in sorted(numbered, key=lambda item: state["devices"].index(item[1]["device"])):
        running = [
            _runs(state["works"][work], seq, max(0.0, now - start))
            for work, seq, start in state["running"]
            if state["works"][work][0] == number
        ]
        passed = row.get("passed", 0)
        cells = (
            f"{row['device']}/{row['stream']}",
            f"{row['count']} of {row['count'] + passed}" if passed else str(row["count"]),
            f"{'≥ ' * bool(passed)}{100 * row['busy'] / (last - first):.1f} %"
            if last > first
            else "",
            duration(row["longest"]) if row["count"] else "",
            ", ".join(running[:3]) + (f" and {len(running) - 3} more" if running[3:] else ""),
            _ended(row.get("lost")),
        )
        yield cells[: len(_columns(state))]


def _runs(work: list[Any], seq: int, seconds: float) -> str:
    """Say what a stream is at."""
    _, name, kind, *_ = work
    if kind == "untraced":
        return "▶ more than are traced"
    return f"▶ {name} #{seq} for {duration(seconds)}"


def _ended(lost: State | None) -> str:
    """Say what of a stream ended with its context, the newest by its name."""
    if lost is None:
        return ""
    earlier = f", and {lost['count'] - 1} earlier" if lost["count"] > 1 else ""
    return f"⊗ {lost['last']} after {duration(lost['seconds'])}{earlier}"
