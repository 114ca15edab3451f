"""What every view has: a state that is drawn from a scene, as a widget, as text and as a table."""

import sys
import weakref
from abc import abstractmethod
from importlib.util import find_spec
from typing import Any, ClassVar, TypeVar, cast

from accel_lab.display.clock import time_of_day
from accel_lab.display.table import folded
from accel_lab.uncopied import Uncopied
from accel_lab.views.scene.observer import Lab, Source, Want, observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ

State = dict[str, Any]
"""Plain JSON values; `closed` says that nothing more comes, `replay` where in the past it is."""


class View(Uncopied):
    """One view of a system, drawn when it is displayed.

    A subclass says how a scene becomes a state, and how a state reads as text and as a table. The
    front end of the same `name` draws the same state.
    """

    _instead = "make another of the same source; sample() is its state as plain data"

    name: ClassVar[str]
    """Of the front end, whose files `assets.entry` names: `widgets/NAME/NAME.js` and `.css`."""
    wants: ClassVar[frozenset[Want]] = frozenset()
    tells_replay: ClassVar[bool] = False
    """Whether what it draws as text and as a table says by itself where a replay is."""

    def __init__(self, source: Lab | Source) -> None:
        self.source = _source(source)
        self.source.want(self, self.wants)

    @abstractmethod
    def fold(self, scene: Scene) -> State:
        """Fold a scene into what is drawn."""

    @abstractmethod
    def text(self, state: State) -> str:
        """Draw a state as lines of text."""

    @abstractmethod
    def html(self, state: State) -> str:
        """Draw a state as semantic tables, without style or script."""

    def pack(self, scene: Scene) -> bytes:
        """Return what is too large for the state, as the front end expects it."""
        del scene
        return b""

    def seen(self, scene: Scene) -> State:
        """Fold a scene; the state of what is over says in `replay` where that is."""
        state = self.fold(scene)
        where = getattr(self.source, "where", None)
        return state if where is None else {**state, "replay": where}

    def sample(self) -> State:
        """Return the state now; any thread, does not wait for a device."""
        with self.source.lock:
            return self.seen(self.source.look())

    def drawn(self) -> State:
        """Return the state as a new look has it; waits up to a second for a device to tell.

        A view that nobody has shown before would else have nothing to draw.
        """
        see = getattr(self.source, "see", None)
        if see is not None:
            see()
        return self.sample()

    def __str__(self) -> str:
        return self._as_text(self.drawn())

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        state = self.drawn()
        note = self._note(state)
        html = (f"<p><strong>{note}</strong></p>" if note else "") + self.html(state)
        return {"text/plain": self._as_text(state), "text/html": html}, {}

    def _as_text(self, state: State) -> str:
        drawn = "\n".join(filter(None, (self._note(state), self.text(state))))
        return "\n".join(part for line in drawn.split("\n") for part in folded(line) or [""])

    def _note(self, state: State) -> str:
        """Say first of what is not now where it is; empty for what is."""
        where = None if self.tells_replay else state.get("replay")
        if where is None:
            return ""
        noun = "fact" if where["kind"] == "recording" else "entry"
        place = f"{noun} {where['position']:,} of {where['count']:,}"
        return f"REPLAY: {place} · {time_of_day(where['at'])}"


V = TypeVar("V", bound=View)
_Shown = weakref.WeakValueDictionary[type[View], View]
_shown: weakref.WeakKeyDictionary[Any, _Shown] = weakref.WeakKeyDictionary()
"""The widgets of each source, which may be what keeps it; until it is closed Jupyter keeps one."""


def show(kind: type[V], source: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> V:
    """Return the view of this kind of a system: a widget where one can live, else a drawing.

    A system has one widget of a kind; it may be displayed any number of times.

    Raises:
        InvalidArgument: it has no views.
        ValueError: the rate is not positive.
    """
    _source(source)
    if not _is_live():
        return kind(source)
    from accel_lab.views.widget.live import widget_class

    views = _shown.setdefault(source, weakref.WeakValueDictionary())
    view = views.get(kind)
    if view is None or view.discarded:  # type: ignore[attr-defined]
        view = views[kind] = widget_class(cast("Any", kind))(source, rate_hz=rate_hz)
    return view  # type: ignore[return-value]


def _source(source: Lab | Source) -> Source:
    if hasattr(source, "want"):
        return cast("Source", source)
    if isinstance(source, View):
        return source.source
    return observer_of(source)


def _is_live() -> bool:
    """Whether this is a Jupyter kernel with the packages of a widget."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel") and find_spec("anywidget") is not None
