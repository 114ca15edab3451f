"""What works with a system's devices and stands in its tree, though a floor above made it."""

import threading
import weakref
from collections.abc import Collection, Iterator
from typing import Protocol

from accel_lab.compute.events.tree import Node


class Guest(Protocol):
    """One of them, as a pipeline that runs."""

    name: str

    def node(self, root: str, name: str) -> Node:
        """Return it as it is now, under this name below the root; any thread."""


class Guests:
    """Those of one system; any thread. They are not kept alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._there: weakref.WeakSet[Guest] = weakref.WeakSet()

    def add(self, guest: Guest) -> None:
        """Have one stand in the tree."""
        with self._lock:
            self._there.add(guest)

    def remove(self, guest: Guest) -> None:
        """Have one stand there no longer."""
        with self._lock:
            self._there.discard(guest)

    def nodes(self, root: str, taken: Collection[str]) -> Iterator[Node]:
        """Yield them by their names; one whose name is taken gets a number."""
        with self._lock:
            there = sorted(self._there, key=lambda one: one.name)
        names = set(taken)
        for guest in there:
            name, number = guest.name, 1
            while name in names:
                number += 1
                name = f"{guest.name} {number}"
            names.add(name)
            yield guest.node(root, name)
