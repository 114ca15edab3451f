"""A part of a system's scene that is over: what a view shows of it stays as it is."""

import threading
from collections.abc import Callable, Iterable

from accel_lab.actor.events import Event
from accel_lab.compute.events.samples import SystemEnded, TreeSampled
from accel_lab.compute.events.tree import Node
from accel_lab.views.scene.observer import Lab, Want
from accel_lab.views.scene.scene import Scene


class Still:
    """A source that nothing more comes to.

    Parameters:
        name: of the system.
        of: which part it is, for people, as "cell 12".
        facts: what was seen then, in order.
    """

    lab: Lab | None = None
    ended = True

    def __init__(self, name: str, of: str, facts: Iterable[Event]) -> None:
        self.of = of
        self.lock = threading.RLock()
        self._scene = Scene()
        root = Node(name=name, path=name, kind="system", state="stopped")
        for fact in (TreeSampled(root=root), *facts, SystemEnded(name=name)):
            self._scene.add(fact)

    def look(self) -> Scene:
        """Return the scene."""
        return self._scene

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample nothing: all that there is was seen."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call nobody."""
        del callback
        return lambda: None
