"""The timeline: what each stream of each device ran, and when, by the device's clock.

The state says what rows, works, running slices and marks there are; the newest finished slices
travel beside it, as `Tally.pack` says.
"""

import textwrap
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from accel_lab.compute.supervision.device_records import Profile
from accel_lab.display.counts import counted
from accel_lab.display.table import as_html, as_text, shortened
from accel_lab.errors import JournalError
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.journal import Journal
from accel_lab.views.axis.relations import READ, Relations, relations_of
from accel_lab.views.axis.strips import pack_strips
from accel_lab.views.chrome_trace import chrome_trace, devices_of
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.past.still import Still
from accel_lab.views.scene.fault_mark import Mark, mark_of
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.tally import Row, Tally, tally
from accel_lab.views.scene.worlds.joints import joints
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

CELLS = 64
"""How many of the newest cells of the notebook a state holds; a page keeps those it has seen."""
TOLD_CELLS = 5
"""How many of them are told in words."""
WIDTH = 80
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
        self._related: State | None = None
        self._marked: tuple[Scene | None, int, list[list[Any]], int] = None, 0, [], 0

    def fold(self, scene: Scene) -> State:
        """Fold what was seen of the work into plain JSON values.

        `rows` have `device`, `stream`, and of finished work `count`, `busy` and `longest` seconds;
        of what ended with its context `lost`: how many, and the last one's name and seconds; and
        `passed`, how many messages were not traced one by one.
        `works` are [row, name, kind], with a fourth value, true, for what ended with its context;
        `running` are [work, seq, start], and when it was taken up where that is known; `marks` are
        [at, device, kind, text], the oldest first. `joints` are collective operations, as `joints`
        returns them.
        `cells` are the newest cells of the notebook, [number, start, end, ended, line], the oldest
        first; `cells_unrecorded` says why there are none. `totals` have the memory of each device.
        `states` are those of devices that do not run. `traced` slices were numbered, `untraced`
        were never seen, `span` is from the first start to the last end. `unrecorded` says why the
        work of this moment is not known. `related` is what was asked for last with `do_relate`:
        `of`, and `makers`, `users` and `group` as [device, seq], the `cell`, and `why` not. A
        recording says `at`, which is its now; a part of a
        session says `of`, which part.
        """
        known = tally(scene)
        running = [
            [known.work(device, one), one.seq, one.start, *filter(None, (one.queued,))]
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
        if found := joints(scene.worlds):
            state["joints"] = found
        if states := _states(scene):
            state["states"] = states
        if known.span is not None:
            state["span"] = list(known.span)
        if "work" in scene.unrecorded:
            state["unrecorded"] = scene.unrecorded["work"]
        state |= _notebook(scene)
        if self._related is not None:
            state["related"] = self._related
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

    def do_relate(self, device: str, seq: int) -> None:
        """Have the next state tell what a message has to do with others: see `Relations`.

        Blocks while the journal's newest entries are read.
        """
        told = self._relations(device, int(seq))
        self._related = {"of": [device, int(seq)], **told._asdict()}
        self.nudge()

    def nudge(self) -> None:
        """Have what a command changed sent soon; only a widget sends anything."""

    def _relations(self, device: str, seq: int) -> Relations:
        past = getattr(self.source, "past", None)
        live = getattr(self.source, "live", None)
        lab = self.source.lab or (live.lab if live is not None else None)
        journal: Journal | None = getattr(lab, "journal", None)
        try:
            if journal is not None:
                entries: Iterable[Entry] = journal[-READ:]
            elif isinstance(past, JournalPast):
                count = len(past)
                entries = past.entries(range(max(0, count - READ), count))
            else:
                return Relations(why="there is no journal to tell")
            return relations_of(entries, device, seq)
        except JournalError as error:
            return Relations(why=str(error))

    def text(self, state: State) -> str:
        """Draw a line a stream: how much it did, its share of the span, and what it is at.

        What runs has been running for as long as is written, up to now or to a recording's `at`.
        """
        return "\n".join((*_filled(_caption(state)), *_table(state), *_filled(_of_cells(state))))

    def html(self, state: State) -> str:
        """Draw the same as one table, each row headed by its stream."""
        caption = ". ".join(filter(None, (_caption(state), _of_cells(state))))
        return as_html(caption, _columns(state), _cells(state))

    def export(self, path: str | Path, *, profile: Profile | None = None) -> Path:
        """Write what is known now as a Chrome trace; returns where.

        Any thread. Perfetto and chrome://tracing open the file.

        Parameters:
            profile: what the cards have recorded themselves, as `lab.profile()` returns it: below
                the streams of each device stand its own, with exact times.

        Raises:
            OSError: it cannot be written.
        """
        with self.source.lock:
            trace = chrome_trace(self.source.look(), () if profile is None else profile.done)
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
    """Write a duration with three digits: 12.5 ms, 1 s, 340 µs; `timeline/time/scale.js` agrees."""
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
    if found := state.get("joints"):
        parts.append(counted(len(found), "collective operation"))
    if lost := sum(row["lost"]["count"] for row in rows if "lost" in row):
        parts.append(f"{lost} ended with {'its' if lost == 1 else 'their'} context")
    parts += [f"{device} is {what}" for device, what in state.get("states", {}).items()]
    if state["untraced"]:
        parts.append(f"{counted(state['untraced'], 'slice')} never seen")
    if "unrecorded" in state:
        parts.append(f"the rest is not recorded: {state['unrecorded']}")
    return ", ".join(parts) + (" (closed)" if state["closed"] and "of" not in state else "")


def _filled(text: str) -> list[str]:
    """Return lines of a text that a terminal does not break."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _table(state: State) -> list[str]:
    """Return the streams as lines; what finds no room beside the others stands below them."""
    rows = list(_cells(state))
    if not rows:
        return []
    lines = as_text(_columns(state), rows, _NUMBERS)
    if max(map(len, lines)) <= WIDTH:
        return lines
    ended = [f"{row[0]}: {row[-1]} ended with its context" for row in rows if row[len(_COLUMNS) :]]
    ended = [line for line in ended if "⊗" in line]
    lines = as_text(_COLUMNS, [row[: len(_COLUMNS)] for row in rows], _NUMBERS)
    return [shortened(line, WIDTH) for line in (*lines, *ended)]


def _of_cells(state: State) -> str:
    """Say how the newest cells of the notebook went; empty where none is known."""
    now = state.get("at", time.time())
    said = [
        f"[{number}] running for {duration(max(0.0, now - start))}"
        if end is None
        else f"[{number}] {ended} after {duration(end - start)}"
        for number, start, end, ended, _ in state.get("cells", ())[-TOLD_CELLS:]
    ]
    if not said and "cells_unrecorded" in state:
        return f"Cells are not recorded: {state['cells_unrecorded']}"
    return f"Cells: {', '.join(said)}" if said else ""


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
            for work, seq, start, *_ in state["running"]
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
