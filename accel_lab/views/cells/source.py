"""The commits of a session as something that can be looked back at, one at a time."""

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.views.scene.observer import Lab, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import State

MOST_BYTES = 64 << 20
"""A buffer that is larger is not made and compared only to be looked at."""
SOURCE = 4000
"""So many letters of a cell are shown."""


class Past(Protocol):
    """A session, as far as one looks back at it.

    Attributes:
        name: of the system.
    """

    name: str

    @property
    def path(self) -> str:
        """The folder."""

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""

    @property
    def commits(self) -> list[int]:
        """The numbers of what was committed."""

    def at(self, cell: int | None = None, *, commit: int | None = None) -> Any:
        """Return the names as they were."""

    def diff(self, before: Any, after: Any, *, most_bytes: int | None = None) -> Any:
        """Say how they differ."""


class Cells:
    """A position among the commits of a session, and what differs there from today.

    It does not keep the session open.

    Attributes:
        lock: held while the state is read or replaced, and not while it is found out.
    """

    lab: Lab | None = None

    def __init__(self, session: Past) -> None:
        self.lock = threading.RLock()
        self._session = weakref.ref(session)
        self._moving = threading.Lock()
        self._watchers: list[Callable[[], None]] = []
        self._scene = Scene()
        self._position = 0
        self._state: State = {"name": session.name, "path": session.path, "count": 0}

    @property
    def ended(self) -> bool:
        """Whether the session was closed, so that nothing more can be had of it."""
        session = self._session()
        return session is None or session.is_closed

    @property
    def state(self) -> State:
        """What was found last."""
        with self.lock:
            return self._state

    @property
    def is_behind(self) -> bool:
        """Whether something was committed since."""
        session = self._session()
        return (
            session is not None and not self.ended and len(session.commits) != self.state["count"]
        )

    def look(self) -> Scene:
        """Return an empty scene: nothing of the system is drawn."""
        return self._scene

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample nothing."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when there is another state; returns what ends that."""
        self._watchers.append(callback)

        def end() -> None:
            with suppress(ValueError):
                self._watchers.remove(callback)

        return end

    def see(self) -> None:
        """Take in what was committed since; blocks while buffers are made and compared."""
        if self.is_behind:
            self.go(None)

    def go(self, position: int | None) -> None:
        """Look at a commit by its place, from 1; blocks while buffers are made and compared.

        Parameters:
            position: None stays, and goes on with the newest where that is looked at.

        Raises:
            InvalidArgument: the session is closed, or there is no such place.
        """
        with self._moving:
            session = self._session()
            if session is None or session.is_closed:
                raise InvalidArgument("the session is closed: open its folder again to look back")
            numbers, before = session.commits, self.state
            was_newest = self._position == before["count"]
            if position is None:
                position = len(numbers) if was_newest else min(self._position, len(numbers))
            if not numbers and not position:
                return
            if type(position) is not int or not 1 <= position <= len(numbers):
                text = f"there are commits 1 to {len(numbers)}, and none at {position!r}"
                raise InvalidArgument(text)
            found = _compared(session, numbers, position)
            with self.lock:
                self._position, self._state = position, found
        for callback in list(self._watchers):
            callback()


def _compared(session: Past, numbers: list[int], position: int) -> State:
    """Return what is drawn: a commit beside the newest."""
    state: State = {"name": session.name, "path": session.path, "count": len(numbers)}
    state["position"] = position
    try:
        then = session.at(commit=numbers[position - 1])
        now = session.at(commit=numbers[-1])
        state |= {"at": then.commit.at, "then": _where(then), "now": _where(now)}
        source = then.commit.source
        state["source"] = source if len(source) <= SOURCE else f"{source[:SOURCE]}…"
        found = session.diff(then, now, most_bytes=MOST_BYTES)
    except AccelError as error:
        return state | {"damage": str(error)}
    state["rows"] = [_row(name, change) for name, change in found.changes.items()]
    state |= {"new": list(found.new), "gone": list(found.gone)}
    other = {*found.changes, *found.new, *found.gone}
    state["same"] = [name for name in then if name not in other]
    if found.first:
        state |= {"first": found.first, "first_name": found.first_name}
        state["rows"].sort(key=lambda row: row["name"] != found.first_name)
    return state


def _where(moment: Any) -> str:
    cell, number = moment.commit.cell, moment.commit.number
    return f"commit {number}" if cell is None else f"cell {cell}"


def _row(name: str, change: Any) -> Mapping[str, Any]:
    row = {"name": name, "how": change.how, "before": change.before, "after": change.after}
    sketch = change.sketch
    return row if sketch is None else row | {"sketch": sketch._asdict()}
