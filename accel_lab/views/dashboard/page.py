"""The page of a dashboard, under Panel: the list of systems, and the one that is looked at."""

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast

import msgspec
import panel as pn
import param
from panel.custom import AnyWidgetComponent

from accel_lab.compute.events.tree import Node
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.spectator import Spectator
from accel_lab.views.canvas.view import CanvasView
from accel_lab.views.dashboard.look import Drawing, Look, draw
from accel_lab.views.dashboard.watched import HZ, Watched
from accel_lab.views.widget.assets import entry, style
from accel_lab.views.widget.assets import source as esm
from accel_lab.views.widget.view import State, View

BEAT_S = 1.0
_MINUTE_S = 60
_SECONDS_UP_TO_S = 60
# Panel's own page has no landmark and no heading, by which a screen reader finds its way.
_PAGE = """{% block contents %}
<main>
<h1 style="position: absolute; overflow: hidden; width: 1px; height: 1px; clip-path: inset(50%)">
Systems of accel_lab
</h1>
{{ super() }}
</main>
{% endblock %}"""


class Desk:
    """What all sessions share: the systems, and the newest drawing of each; the server's thread."""

    def __init__(
        self,
        sources: Callable[[], list[Watched]],
        kind: type[View],
        players: Callable[[], list[Player]] = list,
    ) -> None:
        self.sources = sources
        self.kind = kind
        self.players = players
        # A page learns of the components there are when it opens, and of no later ones.
        self.front = front(cast("Any", kind))
        self.canvas = front(CanvasView)

    def drawing(self, source: Watched) -> Drawing:
        """Return the newest drawing of a system."""
        version = source.version
        found = cast("tuple[View, int, Drawing] | None", source.drawn)
        view, drawn, drawing = found or (self.kind(source.replayable() or source), None, None)
        if drawing is None or drawn != version:
            drawing = draw(view, source.heard_at)
            source.drawn = view, version, drawing
        return drawing._replace(stamp=source.heard_at)

    def overview(self) -> list[State]:
        """Return what the list says of each system."""
        listed = [_listed(source) for source in self.sources()]
        return sorted(listed, key=lambda row: row.get("ended") != "killed")  # what needs a look


class Front(AnyWidgetComponent):
    """What a front end of ours shows; a subclass has its module and style."""

    __abstract = True

    state: Any = param.Bytes(b"")
    columns: Any = param.Bytes(b"")
    stamp: Any = param.Number(0.0)
    shown: Any = param.Integer(0)
    """The number of the picture that a canvas has shown last."""

    def __init__(self, told: Callable[[Any], None], **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self._told = told

    def draw(self, drawing: Drawing) -> None:
        """Send what changed."""
        values: dict[str, Any] = {
            name: value for name, value in drawing._asdict().items() if getattr(self, name) != value
        }
        if values:
            self.param.update(**values)

    def _handle_msg(self, message: Any) -> None:
        self._told(message)


class Systems(Front):
    """The list of systems, one of which can be chosen."""

    _esm = esm("dashboard/dashboard.js")
    _stylesheets = [style("dashboard/dashboard.css")]  # noqa: RUF012 - Panel reads a list


@cache
def front(kind: type[View]) -> type[Front]:
    """Return the component that shows a view of this kind."""
    path = entry(kind.name)
    shown = {"_esm": esm(f"{path}.js"), "_stylesheets": [style(f"{path}.css")]}
    return type(f"{kind.__name__}Front", (Front,), shown)


class Seat:
    """A canvas on one page: what others play is shown there, and nothing of it can be changed."""

    def __init__(self, player: Player, kind: type[Front]) -> None:
        self._view = CanvasView(Spectator(player))
        drawing = draw(self._view, time.time())
        options = drawing._asdict() | {"sizing_mode": "stretch_width"}
        self.front = kind(lambda _: None, **options)  # none of its messages does anything
        self.front.param.watch(self._heard, "shown")

    def update(self) -> None:
        """Send the newest picture, if the page has the one before."""
        self.front.draw(draw(self._view, time.time()))

    def _heard(self, event: Any) -> None:
        self._view.source.delivery.heard(event.new)


class Page:
    """One session: a browser tab, and which system it looks at."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._look: Look | None = None
        self._beside: set[str] = set()  # what there was while it lived, or when it was chosen
        self._front: Front | None = None
        self._beat = -float("inf")
        self._seats: dict[Player, Seat] = {}
        self.systems = Systems(self._take, sizing_mode="stretch_width")
        self._below = pn.Column(sizing_mode="stretch_width", margin=0)
        self._canvases = pn.Column(sizing_mode="stretch_width", margin=0)
        self.update()

    def __panel__(self) -> Any:
        parts = self.systems, self._below, self._canvases
        return pn.Column(*parts, sizing_mode="stretch_width", margin=8)

    def choose(self, key: str) -> None:
        """Look at a system of the list."""
        for source in self._desk.sources():
            if source.key == key:
                self._look_at(source)
                self.update()

    def update(self) -> None:
        """Send what changed since the last time."""
        self._follow()
        source = None if self._look is None else self._look.source
        listed = {"systems": self._desk.overview(), "shown": source and source.key}
        if source is not None and source.unkept:
            listed["unkept"] = f"{source.name}: {source.unkept}"
        state, now = msgspec.json.encode(listed), time.time()
        if state != self.systems.state or now - self._beat >= BEAT_S:
            self._beat = now
            self.systems.draw(Drawing(state, b"", now))
        if self._look is not None and self._front is not None:
            self._front.draw(self._drawing(self._look))
        self._update_canvases()

    def _update_canvases(self) -> None:
        for seat in self._seats.values():
            seat.update()
        players, seats = self._desk.players(), self._seats
        if players != list(seats):
            kind = self._desk.canvas
            self._seats = {one: seats.get(one) or Seat(one, kind) for one in players}
            self._canvases[:] = [seat.front for seat in self._seats.values()]

    def _take(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("do") == "choose":
            self.choose(str(message.get("system")))

    def _drawing(self, look: Look) -> Drawing:
        return look.drawing() or self._desk.drawing(look.source)

    def _follow(self) -> None:
        """Look at something: the newest at first, later what takes the place of one that ended."""
        sources = self._desk.sources()
        if self._look is None:
            if sources:
                self._look_at(sources[0])
        elif not self._look.source.ended:
            self._beside = {source.key for source in sources}
        elif not self._look.replaying:
            for source in sources:
                is_new = not source.ended and source.key not in self._beside
                if is_new and _program(source) == _program(self._look.source):
                    self._look_at(source)
                    break

    def _look_at(self, source: Watched) -> None:
        if self._look is not None and source is self._look.source:
            return
        self._look = Look(source, self._desk.kind)
        self._beside = {one.key for one in self._desk.sources()}
        state, columns, stamp = self._desk.drawing(source)
        self._front = self._desk.front(
            self._look.take,
            state=state,
            columns=columns,
            stamp=stamp,
            sizing_mode="stretch_width",
        )
        self._below[:] = [self._front]


def page(desk: Desk) -> Any:
    """Return the page of a new session; the server's thread."""
    session = Page(desk)
    document: Any = pn.state.curdoc
    document.template = _PAGE

    def update() -> None:
        pn.state.add_periodic_callback(session.update, period=int(1000 / HZ))

    # Once the browser has the page: Bokeh may send it a change before the page that the change is
    # of. The browser drops that, and then does not know what later ones refer to.
    pn.state.onload(update)
    return session.__panel__()


def _program(source: Watched) -> tuple[str, str]:
    return source.speaker.program, source.speaker.folder


def _listed(source: Watched) -> State:
    """Return what the list says of a system; what is zero or absent is left out."""
    with source.lock:
        tree = source.look().tree
    speaker = source.speaker
    listed: State = {
        "key": source.key,
        "name": source.name,
        "program": speaker.program,
        "folder": speaker.folder,
        "pid": speaker.pid,
        "up_s": _coarse(source.up_s),
    }
    if source.recorded:
        listed["ended"] = "recorded"
    elif source.ended:
        listed["ended"] = "killed" if source.killed else "closed"
    elif source.is_stale:
        listed["stale_s"] = _coarse(source.silent_s)
    if source.lost:
        listed["lost"] = source.lost
    return listed | (_sums(list(_devices(tree))) if tree is not None else {})


def _devices(tree: Node) -> Iterator[Node]:
    return (node for node in tree.children if node.kind == "device")


def _sums(devices: list[Node]) -> State:
    states: dict[str, int] = {}
    for device in devices:
        states[device.state] = states.get(device.state, 0) + 1
    used = [device.used_bytes for device in devices if device.used_bytes is not None]
    total = [device.total_bytes for device in devices if device.total_bytes is not None]
    return {
        "states": states,
        "in_flight": sum(device.in_flight for device in devices),
        "restarts": sum(device.restarts for device in devices),
    } | ({"used_bytes": sum(used), "total_bytes": sum(total)} if used else {})


def _coarse(seconds: float) -> int:
    """Round down to what is shown, so that a state that looks the same is the same."""
    whole = max(0, int(seconds))
    return whole if whole < _SECONDS_UP_TO_S else whole - whole % _MINUTE_S
