"""The kernel table: what each kernel, copy and function of a system cost, and which cell sent it.

It counts the slices that the timeline draws. Functions of `gpu.run` and `%%gpu` cells are rows too.
"""

import time
from collections.abc import Iterator
from typing import Any, ClassVar

from accel_lab.display.clock import time_of_day
from accel_lab.display.counts import counted
from accel_lab.display.table import as_html, as_text, shortened
from accel_lab.views.past.still import Still
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.tallies.kernel_tally import Kernel, kernel_tally
from accel_lab.views.timeline import duration
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

LISTED = 200
"""So many rows, those that took the most time; the others are one row together."""
DRAWN = 20
"""So many rows are drawn as text."""
WIDTH = 80
LEAST = 8
"""What is left of a name where the other columns are wide."""

_COLUMNS = ("Kernel", "On", "Calls", "Total", "Mean", "Max", "Share", "Last run", "Cells")
_TEXT_COLUMNS = tuple(name for name in _COLUMNS if name != "Last run")  # the widest, for 80 columns
_NUMBERS = {"Calls", "Total", "Mean", "Max", "Share"}
_CELLS_WIDTH = 9


class KernelsView(View):
    """What each kernel of a system cost."""

    name = "kernels"
    wants: ClassVar[frozenset[Want]] = frozenset({"work"})

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._rows: dict[Kernel, tuple[tuple[Any, ...], State]] = {}  # the last ones, and of what

    def fold(self, scene: Scene) -> State:
        """Fold what was seen of the work into plain JSON values.

        `kernels` have `name`, `device`, `stream` and `kind`; of what came to its end `calls`,
        `total` and `longest` seconds, and `last`, when the newest ended; `running`, since when it
        runs; `lost`, how many ended with their context; `cells`, the first and the last number of
        each run of cells that have sent it, and `earlier`, whether there were others before. What
        is zero or absent is left out. Beyond 200 of them those that took the least are `rest`:
        `kinds`, and their sums.

        `untraced` messages were never seen, `forgotten` ones were seen before anything was counted.
        `unrecorded` says why the work of this moment is not known. A recording says `at`, which is
        its now; a part of a session says `of`, which part.
        """
        known = kernel_tally(scene)
        kernels, rest = known.listed(LISTED)
        running: dict[Kernel, float] = {}
        for device, ones in scene.running.items():
            for one in ones:
                if one.kind != "untraced":
                    kernel = known.find(device, one)
                    running[kernel] = min(one.start, running.get(kernel, one.start))
        nodes = () if scene.tree is None else scene.tree.children
        named = [node.name for node in nodes if node.kind == "device"]
        state: State = {
            "lab": "" if scene.tree is None else scene.tree.name,
            "devices": list(dict.fromkeys([*named, *(one.device for one in kernels)])),
            "kernels": self._folded(kernels, running),
            "untraced": sum(scene.untraced.values()),
            "closed": scene.closed,
        }
        if rest is not None:
            state["rest"] = {name: value for name, value in rest._asdict().items() if value}
        if known.forgotten:
            state["forgotten"] = known.forgotten
        if "work" in scene.unrecorded:
            state["unrecorded"] = scene.unrecorded["work"]
        if self.source.lab is None:
            where = getattr(self.source, "where", None)  # also before the first step
            state["at"] = scene.at or (where["at"] if where is not None else 0.0)
        if isinstance(self.source, Still):
            state["of"] = self.source.of
        return state

    def _folded(self, kernels: list[Kernel], running: dict[Kernel, float]) -> list[State]:
        """Return the rows; folds are more frequent than what changes in most of them."""
        before, self._rows = self._rows, {}
        for one in kernels:
            since = running.get(one)
            now = one.calls, one.lost, one.runs, since
            row = before.get(one)
            self._rows[one] = row if row is not None and row[0] == now else (now, _row(one, since))
        return [row for _, row in self._rows.values()]

    def text(self, state: State) -> str:
        """Draw a line a kernel in 80 columns, those that took the most time first; 20 at most."""
        rows = list(_cells(state, DRAWN))
        if not rows:
            return _caption(state)
        lines = as_text(_TEXT_COLUMNS, [_narrow(row) for row in rows], _NUMBERS)
        if (wide := max(map(len, lines)) - WIDTH) > 0:
            limit = max(LEAST, max(len(row[0]) for row in rows) - wide)
            narrow = [_narrow((shortened(row[0], limit), *row[1:])) for row in rows]
            lines = as_text(_TEXT_COLUMNS, narrow, _NUMBERS)
        return "\n".join((_caption(state), *lines))

    def html(self, state: State) -> str:
        """Draw all rows as one table."""
        return as_html(_caption(state), _COLUMNS, _cells(state, LISTED))


def kernels(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> KernelsView:
    """Return a table of what a system's kernels cost; display it as the last value of a cell.

    A row for each kernel, library message, copy and function on each stream: calls, total, mean
    and longest time by the device's clock, its share, when it ran last, and the numbers of the
    cells that have sent it. Work is traced while somebody looks, and where more than 500 messages
    come between two looks only some are traced: the table says how many were not. In a Jupyter
    kernel with the `lab` extra it is a widget that can be sorted and searched, and whose rows
    select their slices in the timeline. Elsewhere it is drawn once, as text or a table.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(KernelsView, lab, rate_hz=rate_hz)


def _row(one: Kernel, running: float | None) -> State:
    row: State = {
        "name": one.name,
        "device": one.device,
        "stream": one.stream,
        "kind": one.kind,
        "calls": one.calls,
        "total": round(one.total, 9),
        "longest": round(one.longest, 9),
    }
    if one.calls:
        row["last"] = round(one.last, 6)
    if running is not None:
        row["running"] = running
    if one.lost:
        row["lost"] = one.lost
    if one.runs:
        row["cells"] = one.runs
    if one.earlier:
        row["earlier"] = True
    return row


def _caption(state: State) -> str:
    rows, rest = state["kernels"], state.get("rest", {})
    name = ", ".join(filter(None, (state["lab"] or "system", state.get("of"))))
    if "unrecorded" in state and not rows:
        return f"{name}: work is not recorded: {state['unrecorded']}"
    parts = [f"{name}: {counted(len(rows) + rest.get('kinds', 0), 'kernel')}"]
    if rows:
        parts.append(f"{duration(_total(state))} of work")
    else:
        parts.append("no work was seen yet")
    if state["untraced"]:
        parts.append(f"{counted(state['untraced'], 'message')} not traced")
    if "forgotten" in state:
        parts.append(f"{counted(state['forgotten'], 'earlier slice')} not counted")
    if "unrecorded" in state:
        parts.append(f"the rest is not recorded: {state['unrecorded']}")
    return ", ".join(parts) + (" (closed)" if state["closed"] and "of" not in state else "")


def _total(state: State) -> float:
    seconds: float = sum(row["total"] for row in state["kernels"])
    return seconds + float(state.get("rest", {}).get("total", 0.0))


def _cells(state: State, most: int) -> Iterator[tuple[str, ...]]:
    """Yield what stands in each column; what is beyond so many rows is in the last."""
    total = _total(state)
    now = state.get("at", time.time())
    rows = sorted(state["kernels"], key=lambda row: -row["total"])
    shown, others = rows[:most], rows[most:]
    for row in shown:
        on = f"{row['device']}/{row['stream']}"
        yield row["name"], on, *_figures(row, total), _last(row, now), _sent_by(row)
    rest = state.get("rest")
    kinds = len(others) + (0 if rest is None else rest["kinds"])
    if kinds:
        both: list[dict[str, Any]] = [*others, *([] if rest is None else [rest])]
        row = {
            "calls": sum(one.get("calls", 0) for one in both),
            "total": sum(one.get("total", 0.0) for one in both),
            "longest": max(one.get("longest", 0.0) for one in both),
        }
        yield f"{kinds} more", "", *_figures(row, total), "", ""


def _figures(row: dict[str, Any], total: float) -> tuple[str, ...]:
    calls, took = row["calls"], row["total"]
    marks = "▶" * ("running" in row) + (f"⊗{row['lost']}" if "lost" in row else "")
    figures = f"{calls:,} {marks}".strip()
    if not calls:
        return figures, "", "", "", ""
    share = f"{100 * took / total:.1f} %" if total else ""
    return figures, duration(took), duration(took / calls), duration(row["longest"]), share


def _last(row: State, now: float) -> str:
    told = []
    if "running" in row:
        told.append(f"running for {duration(max(0.0, now - row['running']))}")
    elif "last" in row:
        told.append(time_of_day(row["last"]))
    if "lost" in row:
        told.append(f"{row['lost']} ended with {'its' if row['lost'] == 1 else 'their'} context")
    return ", ".join(told)


def _sent_by(row: State) -> str:
    """Return the numbers of the cells, runs of them in short: 3-7, 12."""
    runs = [str(a) if a == b else f"{a}-{b}" for a, b in row.get("cells", ())]
    return ", ".join((["…"] if "earlier" in row else []) + runs)


def _narrow(row: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that text has room for; of many cells the newest."""
    *told, _, cells = row
    if len(cells) > _CELLS_WIDTH:
        cells = f"…{cells[1 - _CELLS_WIDTH :]}"
    return (*told, cells)
