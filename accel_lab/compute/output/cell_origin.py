"""Which notebook cell caused a request, so that its output appears under that cell."""

import asyncio
import contextvars
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from accel_lab.compute.machine import stop_signal
from accel_lab.compute.output.cell_log import CELLS, first_seen
from accel_lab.compute.output.displays import Act, publish
from accel_lab.compute.output.stopped_cell import StoppedCell


class Origin:
    """A cell (or a plain program) and the context in which its output must be written.

    Attributes:
        cell: its number; None of a program.
        shows: what is called there to show something that is no text.
        stopped: whether the stop button has taken something back while it ran.
    """

    __slots__ = ("_context", "cell", "shows", "stopped")

    def __init__(self, cell: int | None) -> None:
        self.cell = cell
        self.shows: Callable[[Act], object] = publish
        self.stopped = False
        self._context = contextvars.copy_context()

    def write(self, stream: str, text: str) -> None:
        """Write text under this cell; any thread."""
        self._context.copy().run(_write, stream, text)

    def say(self, text: str) -> None:
        """Write a line of ours under this cell; any thread."""
        self.write("stderr", f"accel_lab: {text}\n")

    def show(self, act: Act) -> None:
        """Show something under this cell; any thread. What cannot be shown is told of instead."""
        try:
            self._context.copy().run(self.shows, act)
        except Exception as error:  # noqa: BLE001 - the front end's, of what the user displays
            self.say(f"this cannot be displayed: {error}")

    def __repr__(self) -> str:
        return "<the program>" if self.cell is None else f"<cell {self.cell}>"


class Stoppable(Protocol):
    """Who has sent what cells asked for."""

    def stop(self, cell: Origin, /) -> Callable[[], object]:
        """Take back what a stopped cell has sent, at once; return what waits for its end."""


def _write(stream: str, text: str) -> None:
    target = getattr(sys, stream)
    if target is None or getattr(target, "closed", False):
        return  # a daemon's: nobody could read it
    target.write(text)
    target.flush()


_current = Origin(None)
_followed: list[Any] = []
stoppable: "weakref.WeakSet[Stoppable]" = weakref.WeakSet()
"""Whom to tell when the stop button has ended a cell."""


def current() -> Origin:
    """Return the cell that runs, or ran last."""
    return _current


def in_notebook() -> bool:
    """Whether an IPython runs in this process, be it a notebook's or a terminal's."""
    interactive = sys.modules.get("IPython")
    return interactive is not None and interactive.get_ipython() is not None


def follow_notebook() -> None:
    """From now on know which cell runs; does nothing outside IPython."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    if shell is None or shell in _followed:
        return
    _followed.append(shell)
    cell_end = StoppedCell(shell, _stopped)

    def begin(info: Any = None, *_: Any) -> None:
        global _current  # noqa: PLW0603 - one notebook, one running cell
        # Some versions of IPython count a cell before it runs, others after; this allows for it.
        _current = Origin(shell.displayhook.prompt_count)
        source = first_seen(shell) if info is None else getattr(info, "raw_cell", None)
        CELLS.begin(shell.displayhook.prompt_count, str(source or ""), seen=info is not None)
        with suppress(RuntimeError):  # a terminal's cells run without a loop
            if stop_signal.watch(asyncio.get_running_loop()):
                cell_end.follow()

    def end(result: Any = None, *_: Any) -> None:
        # It may come between two of the cell's statements, when IPython compiles the second.
        errors = [getattr(result, f"error_{when}_exec", None) for when in ("in", "before")]
        error = next(filter(None, errors), None)
        CELLS.end(error)
        if isinstance(error, KeyboardInterrupt):
            _stop(_current)
        elif isinstance(error, asyncio.CancelledError):
            _stopped()
        cell_end.over(result)

    begin()
    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)


def _stopped() -> bool | None:
    """Stop the cell that was cancelled; None if not by the button, else whether it had sent any."""
    if not stop_signal.came():
        return None
    with stop_signal.raised():
        _stop(_current)
    return _current.stopped


def _stop(cell: Origin) -> None:
    """Take back what a stopped cell has sent: everywhere first, for then it is waited for."""
    for outlast in [one.stop(cell) for one in list(stoppable)]:
        outlast()
