"""The open systems of this process, and who follows which are open."""

import atexit
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_lab.system import System

_open: "weakref.WeakKeyDictionary[System, None]" = weakref.WeakKeyDictionary()
"""In the order in which they were opened."""
opened: "list[Callable[[System], None]]" = []
"""Called with each system that is open, in the thread that opened it; one that another has just
added is called, too."""
ended: "list[Callable[[System], None]]" = []
"""Called with each system that was closed, in the thread that closed it."""


def running() -> "list[System]":
    """Return the systems that are open, in the order in which they were opened; any thread."""
    # One step, which no other thread can come between.
    found = _open.keyrefs()
    return [system for ref in found if (system := ref()) is not None]


def add(system: "System") -> None:
    """Say that a system is open; the thread that opened it."""
    _open[system] = None
    for hook in opened:
        hook(system)


def remove(system: "System") -> None:
    """Say that a system was closed; the thread that closed it."""
    _open.pop(system, None)
    for hook in ended:
        hook(system)


def _at_exit() -> None:
    """Have those that are open do what they were sent, within bounds, and close."""
    for system in running():
        system.end()


atexit.register(_at_exit)


def end_first() -> None:
    """Have systems end before all that was loaded up to now ends with the program."""
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


def _after_fork() -> None:
    for system in list(_open):
        system.orphan()


os.register_at_fork(after_in_child=_after_fork)
