"""What a view sees of a system: its newest tree, and after the end the last one."""

import weakref
from typing import Protocol

from accel_lab.actor.events import EventStream
from accel_lab.compute.tree import Node
from accel_lab.errors import SystemClosed


class Lab(Protocol):
    """What a view needs of a system."""

    @property
    def events(self) -> EventStream:
        """The stream of facts."""

    def tree(self) -> Node:
        """Return a snapshot; any thread, does not block."""


class Snapshots:
    """The newest tree of a lab, which it does not keep alive."""

    def __init__(self, lab: Lab) -> None:
        self._lab = weakref.ref(lab)
        self._last: Node | None = None
        self._closed = False

    def take(self) -> tuple[Node | None, bool]:
        """Return the newest tree and whether the lab is closed; any thread, does not block.

        The tree of a closed lab is the last that was seen, None if there never was one.
        """
        lab = self._lab()
        if self._closed or lab is None:
            self._closed = True
            return self._last, True
        try:
            self._last = lab.tree()
        except SystemClosed:
            self._closed = True
        else:
            self._closed = self._last.state == "stopped"
        return self._last, self._closed
