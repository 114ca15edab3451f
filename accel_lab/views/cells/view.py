"""The scrubber over the cells of a session: what names stood for then, beside today."""

import weakref
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from typing import Any

from accel_lab.display.clock import time_of_day
from accel_lab.display.sketch import Sketch, svg
from accel_lab.display.table import as_html, folded
from accel_lab.errors import InvalidArgument
from accel_lab.views.cells.source import Cells, Past
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget import commands
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

_NONE_YET = "nothing is committed yet"
_sources: "weakref.WeakKeyDictionary[Any, Cells]" = weakref.WeakKeyDictionary()


class CellsView(View):
    """A commit of a session, and what has become of its names since."""

    name = "cells"
    source: Cells

    def fold(self, scene: Scene) -> State:
        """Return what was found last; what was committed since is looked at on another thread."""
        del scene
        if self.source.is_behind:
            commands.take(self, {"do": "refresh"})
        return self.source.state | {"closed": self.source.ended}

    def do_seek(self, position: int) -> None:
        """Go to a commit by its place; blocks while buffers are made and compared."""
        self.source.go(position)

    def do_refresh(self) -> None:
        """Take in what was committed since."""
        self.source.see()

    def text(self, state: State) -> str:
        """Draw the commit, and what differs, in lines of 80 characters."""
        lines = [_caption(state), *(f"  {line}" for line in _lines(state))]
        return "\n".join(part for line in lines for part in folded(line))

    def html(self, state: State) -> str:
        """Draw what differs as a table, with pictures."""
        then, now = state.get("then", "then"), state.get("now", "now")
        changed = state.get("rows", ())
        heads = ("Name", f"After {then}", f"{now.capitalize()}, today", "Difference")
        rows = [(one["name"], one["before"], one["after"], one["how"]) for one in changed]
        parts = [as_html(_caption(state), heads, rows)]
        parts += [_picture(one, then, now) for one in changed if "sketch" in one]
        parts += [f"<p>{escape(line)}</p>" for line in _rest(state)]
        return "".join(parts)


def cells(session: Past, *, rate_hz: float = DEFAULT_HZ) -> CellsView:
    """Return the scrubber over the cells of a session; display it as the last value of a cell.

    A slider goes over what was committed. For each it shows the cell's text, the first message
    since then that has made something different, and every name that stands for something else
    today, with both values. Buffers up to 64 MiB are made again and compared for that, when you
    let the slider go. Nothing is bound or written.

    Parameters:
        session: what `accel_lab.open` has returned.
        rate_hz: how often it may update, at most 30.

    Raises:
        InvalidArgument: it is no session.
        ValueError: the rate is not positive.
    """
    if not hasattr(type(session), "commits"):
        text = f"cells() looks back at a session, as accel_lab.open() returns, not at {session!r}"
        raise InvalidArgument(text)
    return show(CellsView, _sources.setdefault(session, Cells(session)), rate_hz=rate_hz)


def _caption(state: State) -> str:
    title = f"cells of {state['path']}"
    if "then" not in state:
        return f"{title}: {state.get('damage', _NONE_YET)}"
    place = f"{state['position']} of {state['count']} commits, {time_of_day(state['at'])}"
    ending = " (closed)" if state["closed"] else ""
    return f"{title}: after {state['then']} ({place}), beside {state['now']}{ending}"


def _lines(state: State) -> Iterator[str]:
    for one in state.get("rows", ()):
        yield f"{one['name']}: {one['how']}"
    yield from _rest(state)


def _rest(state: State) -> Iterator[str]:
    """Yield what is no row."""
    if "then" in state and "damage" in state:
        yield state["damage"]
    if "first" in state:
        yield f"first message: {state['first']}"
    for key, words in (("new", "new since"), ("gone", "gone since"), ("same", "as it was")):
        if state.get(key):
            yield f"{words}: {', '.join(state[key])}"


def _picture(row: State, then: str, now: str) -> str:
    drawn = svg(Sketch(**row["sketch"]), f"after {then}", f"{now}, today")
    data = b64encode(drawn.encode()).decode()
    what = escape(f"{row['name']}: {row['how']}", quote=True)
    return (
        f'<figure><img alt="{what}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{what}</figcaption></figure>"
    )
