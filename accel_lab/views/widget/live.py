"""The live form of a view: traits that the publisher's thread sends. It needs anywidget."""

import weakref
from functools import cache
from typing import Any, ClassVar, cast

import msgspec
import traitlets
from anywidget import AnyWidget

from accel_lab.views.scene.observer import Lab, Source
from accel_lab.views.widget import commands
from accel_lab.views.widget.assets import entry, style
from accel_lab.views.widget.assets import source as esm
from accel_lab.views.widget.publisher import BEAT_S, DEFAULT_HZ, IDLE_HZ, PUBLISHER, silence_s
from accel_lab.views.widget.view import View

_PUBLISHED = frozenset({"state", "columns", "stamp", "silence"})


class LiveView(AnyWidget):
    """A widget that the publisher thread keeps up to date until its source ends.

    It is mixed into a View. The state is JSON in bytes: at any size that costs the kernel less than
    a dict, and an unchanged state is recognised without a look inside. `silence` is for how many
    seconds a view in which all is well may send nothing.
    """

    state = traitlets.Bytes(read_only=True).tag(sync=True)
    columns = traitlets.Bytes(read_only=True).tag(sync=True)
    stamp = traitlets.Float(read_only=True).tag(sync=True)
    silence = traitlets.Float(BEAT_S + 1 / IDLE_HZ, read_only=True).tag(sync=True)

    kind: ClassVar[type[View]]
    """The view that it is mixed into."""

    def __init__(self, source: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> None:
        self.discarded = False
        self._ended = False
        self._drawn_text: str | None = None
        AnyWidget.__init__(self)
        commands.take_anywhere(self.comm)
        self.kind.__init__(self._view, source)
        place = self._place = PUBLISHER.add(self, rate_hz=rate_hz)
        self._unfollow = self._view.source.on_news(place.nudge)
        weakref.finalize(self, self._unfollow).atexit = False
        self.on_msg(_obey)

    @property
    def _view(self) -> View:
        return cast("View", self)

    @property
    def ended(self) -> bool:
        """Whether the last state was sent."""
        return self._ended

    def publish(self, at: float) -> bool:
        """Sample and send what changed, or a sign of life; the publisher's thread only."""
        view = self._view
        with view.source.lock:
            scene = view.source.look()
            sample = view.seen(scene)
            columns = view.pack(scene)
        body = msgspec.json.encode(sample)
        changed = body != self.state or columns != self.columns
        if changed or at - self.stamp >= BEAT_S:
            self._tell(
                columns=columns, state=body, stamp=at, silence=silence_s(self._place.period_s)
            )
        if sample["closed"] and view.source.ended:
            self._end()
        return changed

    def _tell(self, **new: float | bytes) -> None:
        """Send those of these traits that are others now, as one message."""
        changed = {name: value for name, value in new.items() if value != getattr(self, name)}
        for name, value in changed.items():
            self.set_trait(name, value)
        self.send_state(changed.keys())

    def notify_change(self, change: Any) -> None:
        """Tell who observes a trait in this process, and the page, unless `publish` does that."""
        if change["name"] in _PUBLISHED:
            traitlets.HasTraits.notify_change(self, change)
        else:
            super().notify_change(change)

    def nudge(self) -> None:
        """Ask for a sample as soon as the rate allows; any thread."""
        self._place.nudge()

    def close(self) -> None:
        """Take the widget off every page and stop its updates; any thread, does not block."""
        self.discarded = True
        self._end()
        super().close()
        # ipywidgets puts None over the method; a view that was closed can still be read as text.
        self.__dict__.pop("_repr_mimebundle_", None)

    def _end(self) -> None:
        self._ended = True
        self._unfollow()

    def __repr__(self) -> str:
        return str(self._view) if self._drawn_text is None else self._drawn_text

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Put what a page without a widget manager shows beside the widget."""
        drawn, metadata = View._repr_mimebundle_(self._view)
        self._drawn_text = drawn["text/plain"]  # anywidget asks for it: no second look for that
        live = None if self.discarded else AnyWidget._repr_mimebundle_(self)
        self._drawn_text = None
        return (drawn, metadata) if live is None else (live[0] | drawn, live[1])


def _obey(widget: LiveView, content: Any, _: object) -> None:
    """Take a message from the front end; whichever thread the kernel takes comms in."""
    view = widget._view  # noqa: SLF001  (the two are one noun)
    commands.take(view, content)


@cache
def widget_class(kind: type[View]) -> type[Any]:
    """Return the live form of a kind of view."""
    # The kind comes first, so that what the widget's own bases call ends before it; what both have
    # is the widget's.
    both = {name: getattr(LiveView, name) for name in ("__init__", "__repr__", "_repr_mimebundle_")}
    path = entry(kind.name)
    front = {"kind": kind, "_esm": esm(f"{path}.js"), "_css": style(f"{path}.css")}
    return type(f"{kind.__name__}Widget", (kind, LiveView), both | front)
