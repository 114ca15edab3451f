"""The journal view: a scrubber over what a system was sent, or over a recording of it.

While it is live it follows the end. At any other position it, and every view that shares its
source, shows the past: position p is what was after the first p entries.
"""

import os
from bisect import bisect_left
from collections.abc import Callable
from functools import partial, wraps
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any, ClassVar, Concatenate, ParamSpec

from accel_lab.display.clock import time_of_day
from accel_lab.display.table import as_html, as_text, in_one_line
from accel_lab.errors import InvalidArgument
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.journal import Journal
from accel_lab.views.past.differences import Difference, Differences, compare
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.past.player import SPEEDS, Line, Past, Player
from accel_lab.views.past.recording import Recording
from accel_lab.views.past.replayable import Replayable, past_of, replayable_of
from accel_lab.views.past.wording import by_number
from accel_lab.views.scene.observer import Lab, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

BINS = 120
ROWS = 15
WORDS = 160
_COLUMNS = ("Entry", "Time", "Device", "Cell", "What", "Outcome")
_LINE = ("Entry", "Time", "Device", "Cell", "What")
WIDTH = 80
_MARKS = {"fault": "✕", "turn": "↻", "": ""}
_RUNNING = "running"
UNSAID = {"", "ok so far"}
"""Outcomes that need no line of their own."""
INDENT = " " * 8
Names = dict[tuple[str, str, int], str]
"""What buffers are called, by session, device and number."""
P = ParamSpec("P")


def _alone(
    move: Callable[Concatenate["JournalView", P], None],
) -> Callable[Concatenate["JournalView", P], None]:
    """Have no other thread move the views of a source meanwhile, or have it forget."""

    @wraps(move)
    def alone(view: "JournalView", /, *args: P.args, **named: P.kwargs) -> None:
        with view.source.moving:
            move(view, *args, **named)

    return alone


class JournalView(View):
    """A position in a past: where it is, the entries around it, and what moves it."""

    name = "journal"
    wants: ClassVar[frozenset[Want]] = frozenset({"work"})
    tells_replay: ClassVar[bool] = True
    source: Replayable

    def __init__(self, source: Replayable) -> None:
        super().__init__(source)
        self._entries: tuple[object, State] = (None, {})  # of what, and as it is drawn

    @property
    def player(self) -> Player | None:
        """Where the past is shown; None while it is live."""
        return self.source.player if self.source.replaying else None

    def sample(self) -> State:
        """Return the state with everything that was written by now; blocks while that is read."""
        self.source.read()
        return super().sample()

    def fold(self, scene: Scene) -> State:
        """Fold the position, and which entries run now; the rest of the scene the others draw."""
        self.source.read_soon()
        source, past = self.source, self.source.past
        live = not source.replaying
        count = len(past.times)
        position = count if live else source.player.position
        state: State = {
            "name": past.name,
            "kind": past.kind,
            "closed": source.live is not None and source.live.ended,
            "count": count,
            "position": position,
            "faults": len(past.faults),
            "speed": source.player.speed,
            "speeds": SPEEDS,
        }
        if source.live is not None:
            state["live"] = live
        if count:
            state |= {"first": past.times[0], "last": past.times[count - 1]}
            state["at"] = past.times[count - 1] if live else source.player.at
            state |= self._drawn(past, position, count)
            if live:
                state["window"] = _with_running(state["window"], scene)
        if source.player.playing and not live:
            state["playing"] = True
        state |= _lacks(past)
        if source.differences is not None:
            state["compared"] = _compared(source.differences, past)
        return state

    def _drawn(self, past: Past, position: int, count: int) -> State:
        """Return the entries as they are drawn; folds are more frequent than news of them."""
        names = self._names()
        mark = (position, count, past.dropped, len(past.faults), len(past.turns), names)
        if self._entries[0] != mark:
            rows = window(past, position, count, names)
            self._entries = mark, {"strip": strip(past, count), "window": rows}
        return self._entries[1]

    def _names(self) -> Names:
        """Return what the notebook calls the buffers of a system of this process."""
        held = getattr(self.source.live, "held", None)
        journal = getattr(getattr(self.source.live, "lab", None), "journal", None)
        sessions = getattr(journal, "own_sessions", ())
        if held is None or not sessions:
            return {}
        return {
            (session, device, id_): names[0]
            for (device, _), by_id in held().items()
            for id_, names in by_id.items()
            for session in sessions
        }

    def text(self, state: State) -> str:
        """Draw the position, and the entries around it, in lines of 80 characters."""
        told = [_caption(state), *_notes(state)]
        told = [line for one in told for line in wrap(one, WIDTH, subsequent_indent="    ")]
        cells = [_cells(row) for row in state.get("window", ())]
        if cells:
            here = str(state["position"] - 1)
            heads, *lines = as_text(_LINE, [_short(row) for row in cells])
            told.append(f"  {heads}")
            for row, line in zip(cells, lines, strict=True):
                told.append(f"{'▸' if row[0] == here else ' '} {line}")
                if row[-1] not in UNSAID:
                    outcome = in_one_line(row[-1], WORDS)
                    told += wrap(outcome, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
        return "\n".join(told)

    def html(self, state: State) -> str:
        """Draw the entries around the position as one table; its own row is current."""
        said = ". ".join((_caption(state), *_notes(state)))
        window = state.get("window", ())
        here = state["position"] - 1
        current = next((n for n, row in enumerate(window) if row["n"] == here), None)
        return as_html(said, _COLUMNS, map(_cells, window), current=current)

    @_alone
    def do_seek(self, position: int | None = None, at: float | None = None) -> None:
        """Go to a position, or to a moment; blocks while what leads there is folded."""
        self.source.replay()
        if at is not None:
            self.source.player.seek_time(at)
        elif position is not None:
            self.source.player.seek(position)

    @_alone
    def do_step(self, n: int = 1) -> None:
        """Pause and go on, or back."""
        self.source.replay()
        self.source.player.step(n)

    @_alone
    def do_play(self, speed: float | None = None) -> None:
        """Go on by itself."""
        self.source.replay()
        self.source.player.play(speed)

    @_alone
    def do_speed(self, speed: float) -> None:
        """Go on at another speed, now or when it is next played.

        Raises:
            InvalidArgument: the speed is not a finite one above 0; the one before stays.
        """
        if self.source.player.playing:
            self.source.player.play(speed)
        else:
            self.source.player.speed = speed
            self.source.player.pause()

    @_alone
    def do_pause(self) -> None:
        """Stay at the position."""
        self.source.replay()
        self.source.player.pause()

    @_alone
    def do_next_fault(self) -> None:
        """Go to the next failure; from live, to the last."""
        if self.source.replaying:
            self.source.player.next_fault()
            return
        self.source.replay()
        if faults := self.source.past.faults:
            self.source.player.seek(faults[-1] + 1)

    @_alone
    def do_live(self) -> None:
        """Show the system as it is, if there is one."""
        self.source.go_live()


def journal(
    past: Lab | Journal | Recording | str | Path,
    *,
    compare: Lab | Journal | str | Path | None = None,
    rate_hz: float = DEFAULT_HZ,
) -> JournalView:
    """Return the scrubber of a system's past; display it as the last value of a cell.

    Of a system it follows the journal until you move it. Blocks while the journal is read.

    Parameters:
        past: a system, its journal or a recording, or the path of one of these (JSON lines, or a
            journal's file or address).
        compare: another run, whose messages are compared, device by device, with those of this
            one: the first that is another, has another shape, or made something else is marked.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        InvalidArgument: the system keeps no journal, or a recording is to be compared.
        JournalError: there is no journal there, or it is of a later version.
        RecordingError: the same of a recording.
        ValueError: the rate is not positive.
    """
    source = _source_of(past)
    if compare is not None:
        source = _against(source, compare)
    return show(JournalView, source, rate_hz=rate_hz)


def strip(past: Past, count: int) -> dict[str, Any]:
    """Return how many entries fall into each part of the time, and into which ones marks do."""
    times = past.times
    first, last = times[0], times[count - 1]
    width = (last - first) / BINS or 1.0
    edges = [bisect_left(times, first + width * i, 0, count) for i in range(BINS)] + [count]
    bins = [after - before for before, after in pairwise(edges)]

    def place(number: int) -> int:
        return min(BINS - 1, int((times[number] - first) / width))

    found: dict[str, Any] = {"bins": bins}
    for name, numbers in (("faults", past.faults), ("turns", past.turns)):
        if places := sorted({place(number) for number in list(numbers) if number < count}):
            found[name] = places
    return found


def window(
    past: Past, position: int, count: int, names: Names | None = None
) -> list[dict[str, Any]]:
    """Return the entries around a position in words, with buffers called by `names`."""
    first = max(0, min(position - 1 - ROWS // 2, count - ROWS))
    steps = range(first, min(count, first + ROWS))
    if isinstance(past, JournalPast) and names:
        lines = past.lines(steps, partial(_called, names))
    else:
        lines = past.lines(steps)
    return [_row(number, line) for number, line in zip(steps, lines, strict=False)]


def _called(names: Names, entry: Entry, id_: int) -> str:
    return names.get((entry.session, entry.device, id_)) or by_number(entry, id_)


def _row(number: int, line: Line) -> dict[str, Any]:
    row: dict[str, Any] = {"n": number, "at": line.at, "what": in_one_line(line.what, WORDS)}
    for name in ("device", "generation", "mark", "seq", "cell"):
        if value := getattr(line, name):
            row[name] = value
    if line.outcome:
        row["outcome"] = in_one_line(line.outcome, WORDS)
    if line.detail:
        row["detail"] = [list(one) for one in line.detail]
    return row


def _lacks(past: Past) -> State:
    """Return what a state says of losses, and of what is not there, with the reason."""
    found: State = {}
    if isinstance(past, JournalPast):
        found = {"losses": len(past.losses), "unread": past.unread}
        if past.dropped:
            found["bound"] = past.bound
    found |= {"dropped": past.dropped, "damage": past.damage}
    return {name: value for name, value in found.items() if value}


def _with_running(rows: list[State], scene: Scene) -> list[State]:
    """Return the rows, where those that are at work now say so."""
    running = {(device, one.seq) for device, ones in scene.running.items() for one in ones}
    if not running:
        return rows
    return [
        row | {"outcome": _RUNNING, "running": True}
        if (row.get("device"), row.get("seq")) in running
        else row
        for row in rows
    ]


def _compared(differences: Differences, past: Past) -> dict[str, Any]:
    return {
        "with": differences.name,
        "messages": differences.messages,
        "undigested": differences.undigested,
        "found": [_difference(one, past) for one in differences.found],
    }


def _difference(one: Difference, past: Past) -> dict[str, Any]:
    words = {"what": in_one_line(one.what, WORDS), "other": in_one_line(one.other, WORDS)}
    return one._asdict() | words | {"at": past.times[one.here]}


def _source_of(past: Any) -> Replayable:
    if isinstance(past, Replayable):
        return past
    if isinstance(past, str | Path):
        past = _open(past)
    if isinstance(past, Recording):
        return Replayable(past, player=past.player)
    if isinstance(past, Journal):
        return Replayable(past_of(past))
    return replayable_of(past)


def _open(path: str | Path) -> Recording | Journal:
    """Open a file by what is in it, or a journal by its address."""
    file = Path(path)
    if not os.path.isfile(file):  # noqa: PTH113 - what can be no name of a file is none
        return Journal.open(path)
    with file.open("rb") as lines:
        head = lines.readline(200)
    if b'"recording"' in head:
        return Recording.open(file)
    if head.startswith(b"{"):
        return Journal.from_jsonl(file)
    return Journal.open(path)


def _against(source: Replayable, other: Any) -> Replayable:
    """Return a source that marks where the past differs from another run."""
    past, run = _own_past(source), _own_past(_source_of(other))
    differences = compare(past, run)
    past.keep(1 + max((one.here for one in differences.found), default=-1))
    return Replayable(past, source.live, differences)


def _own_past(source: Replayable) -> JournalPast:
    """Return a past that nobody else has forget, for then its entries fall."""
    if not isinstance(source.past, JournalPast):
        raise InvalidArgument("journals can be compared; a recording does not have the messages")
    return source.past if source.live is None else source.past.again()


def _caption(state: State) -> str:
    count, position = state["count"], state["position"]
    where = f"{state['kind']} of {state['name']}"
    if not count:
        return f"{where}: {'nothing' if state.get('unread') else 'nothing yet'}"
    if state.get("live"):
        return f"{where}: {count} entries, live" + (" (closed)" if state["closed"] else "")
    return f"{where}: REPLAY, {position} of {count} entries, {time_of_day(state['at'])}"


def _notes(state: State) -> list[str]:
    notes: list[str] = []
    if state.get("dropped"):
        why = f": {state['bound']}" if "bound" in state else ""
        notes.append(f"{state['dropped']} entries are gone{why}")
    if state.get("unread"):
        notes.append(f"what follows cannot be read here: {state['unread']}")
    if state.get("damage"):
        notes.append(f"it is damaged: {state['damage']}")
    if compared := state.get("compared"):
        same = f"{compared['messages']} messages are as in {compared['with']}"
        if compared["undigested"]:
            same += f" ({compared['undigested']} without a digest of both results)"
        notes.append(same)
        notes += [
            f"entry {one['here']} on {one['device']}: {one['why']}: "
            f"{one['what'] or 'nothing'} here, {one['other'] or 'nothing'} there"
            for one in compared["found"]
        ]
    return notes


def _short(cells: tuple[str, ...]) -> tuple[str, ...]:
    """Return the cells of a line: no parts of seconds, and no more than fits."""
    number, at, device, cell, what, _ = cells
    taken = 2 + sum(len(one) + 2 for one in (max(number, "Entry", key=len), at[:8], device))
    room = WIDTH - taken - max(len(cell), len("Cell")) - 2
    return number, at[:8], device, cell, in_one_line(what, max(20, room))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    what = f"{_MARKS[row.get('mark', '')]} {row['what']}".strip()
    return (
        str(row["n"]),
        time_of_day(row["at"]),
        row.get("device", ""),
        f"cell {row['cell']}" if row.get("cell") else "",
        what,
        f"▶ {_RUNNING}" if "running" in row else row.get("outcome", ""),
    )
