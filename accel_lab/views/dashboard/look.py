"""What one page of a dashboard shows: a system as all pages see it, or its past by itself."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from accel_lab.errors import InvalidArgument
from accel_lab.views.dashboard.watched import Watched
from accel_lab.views.past.replayable import Replayable
from accel_lab.views.scene.observer import Lab, Source
from accel_lab.views.widget import commands
from accel_lab.views.widget.view import View

Kind = Callable[[Lab | Source], View]
"""Makes a view of a source."""


class Drawing(NamedTuple):
    """What the front end of a view is given."""

    state: bytes
    columns: bytes
    stamp: float


def draw(view: View, stamp: float) -> Drawing:
    """Draw a view of a source as it is now; any thread."""
    with view.source.lock:
        scene = view.source.look()
        state, columns = view.seen(scene), view.pack(scene)
    return Drawing(msgspec.json.encode(state), columns, stamp)


class Look:
    """A system on one page, which the scrubber on it takes back in time; no other page follows."""

    name = "lab"

    def __init__(self, source: Watched, kind: Kind) -> None:
        self.source = source
        self._kind = kind
        self._past: View | None = None

    @property
    def replaying(self) -> bool:
        """Whether the page shows the past."""
        return self._past is not None

    def take(self, message: Any) -> None:
        """Queue what the page asks for; any thread, does not block."""
        commands.take(self, message)

    def do_part(self, part: str, message: dict[str, Any]) -> None:
        """Move in the past; blocks while it is read and folded. Nothing else can be done.

        Raises:
            InvalidArgument: it is another part's command, or there is no past.
        """
        if part != "journal":
            raise InvalidArgument("the dashboard cannot change a system")
        view = self._past or self._begin()
        commands.obey(view, "part", part=part, message=message)
        self._past = view if _replays(view) else None

    def _begin(self) -> View:
        past = self.source.replayable()
        if past is None:
            raise InvalidArgument(f"{self.source.name}: {self.source.unkept}")
        return self._kind(past)

    def drawing(self) -> Drawing | None:
        """Draw the past; None while the page shows what all do."""
        view = self._past
        return None if view is None else draw(view, time.time())


def _replays(view: View) -> bool:
    return isinstance(view.source, Replayable) and view.source.replaying
