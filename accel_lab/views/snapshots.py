"""What a view sees of a system: its newest tree, and after the end the last one."""

import weakref
from typing import Protocol

import msgspec

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

        The tree of a closed lab is the last that was seen alive, with every actor stopped; None
        if there never was one.
        """
        if not self._closed:
            self._look()
        return self._last, self._closed

    def _look(self) -> None:
        lab = self._lab()
        try:
            tree = lab.tree() if lab is not None else None
        except SystemClosed:
            tree = None
        self._closed = tree is None or tree.state == "stopped"
        # A tree taken while all is torn down tells of the tearing, not of the work.
        if not self._closed or self._last is None:
            self._last = tree
        elif self._last is not None:
            self._last = _stopped(self._last)


def _stopped(node: Node) -> Node:
    """Return a tree in which nothing runs and nothing waits."""
    return msgspec.structs.replace(
        node,
        state="stopped",
        mailbox=0,
        in_flight=0,
        children=tuple(map(_stopped, node.children)),
    )
