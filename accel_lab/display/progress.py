"""A bar for what takes longer than a second, in a terminal or a notebook."""

import asyncio
import sys
import threading
import time
import weakref
from html import escape
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from accel_lab.display.sizes import memory, size

QUIET_S = 1.0
REFRESH_S = 0.1
Unit = Literal["", "bytes"]


class Bar:
    """Shows how much is done; nothing in the first second, and nothing where nobody looks.

    There is one at a time: while it is shown, what begins in its course shows nothing.

    Parameters:
        text: what is done.
        total: of how much; None when that cannot be told: then the time is shown, and bytes.
        unit: what is counted.
        shown: whether anything is to be shown at all.
    """

    def __init__(
        self, text: str, total: int | None, *, unit: Unit = "", shown: bool = True
    ) -> None:
        self._text = text
        self._total = total
        self._unit = unit
        self._shown = shown
        self._began = time.monotonic()
        self._next = self._began + QUIET_S
        self._drawing: _Drawing | None = None
        self.count = 0
        """How much was done when that was told last."""
        self._ticking: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def at(self, count: int) -> None:
        """So much is done."""
        self.count = count
        if not self._shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + REFRESH_S
        if self._drawing is None:
            if not _claimed(self):
                return
            self._drawing = _drawing()
            self._shown = self._drawing is not None
        if self._drawing is not None:
            self._drawing.draw(self._line(count), count, self._total)

    def tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Show the time that passes, while the loop (the calling thread's) waits."""
        self.at(0)
        self._ticking = loop.call_later(REFRESH_S, self.tick, loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(done=kind is None)

    def end(self, *, done: bool) -> None:
        """Leave it as it is, or full when all is `done`."""
        if self._ticking is not None:
            self._ticking.cancel()
        if self._drawing is not None:
            if done:
                total = self.count if self._total is None else self._total
                self._drawing.draw(self._line(total), total, self._total)
            self._drawing.end()
        _release(self)

    def _line(self, count: int) -> str:
        seconds = f"{time.monotonic() - self._began:.1f} s"
        if self._total is None and self._unit == "bytes" and count:
            return f"{self._text}: {size(count)}, {seconds}"
        if self._total is None:
            return f"{self._text}: {seconds}"
        of = f"{count} of {self._total}"
        if self._unit == "bytes":
            of = memory(count, self._total)
        return f"{self._text}: {of}, {seconds}"


_claims = threading.RLock()  # a finalizer of the user's may draw a bar in the middle
_claimant: "weakref.ref[Bar] | None" = None


def _claimed(bar: Bar) -> bool:
    """Have this be the one bar that is shown; False while another is."""
    global _claimant  # noqa: PLW0603 - there is one screen
    with _claims:
        other = None if _claimant is None else _claimant()
        if other is None:
            _claimant = weakref.ref(bar)
        return other is None


def _release(bar: Bar) -> None:
    global _claimant  # noqa: PLW0603 - as above
    with _claims:
        if _claimant is not None and _claimant() is bar:
            _claimant = None


class _Drawing(Protocol):
    def draw(self, line: str, count: int, total: int | None) -> None:
        """Show a line, and a bar that is so full; without a total one that moves."""

    def end(self) -> None:
        """Leave it as it is."""


def _drawing() -> _Drawing | None:
    """Return where somebody looks; None where nobody does."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        return _InNotebook()
    stdout = sys.stdout
    if stdout is None or stdout.closed:  # a daemon's
        return None
    return _InTerminal() if stdout.isatty() else None


class _InTerminal:
    """A line of the terminal's, drawn by Rich."""

    def __init__(self) -> None:
        # Every process imports this module, and few draw a bar.
        from rich.progress import BarColumn, Progress, TextColumn

        columns = BarColumn(), TextColumn("{task.description}")
        self._progress = Progress(*columns, auto_refresh=False)
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def draw(self, line: str, count: int, total: int | None) -> None:
        self._progress.update(self._task, description=line, completed=count, total=total)
        self._progress.refresh()

    def end(self) -> None:
        self._progress.stop()


class _InNotebook:
    """An output of the cell's, which the notebook keeps: it reads well without a kernel, too."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._line = ""

    def draw(self, line: str, count: int, total: int | None) -> None:
        self._line = line
        full = "" if total is None else f' value="{count}" max="{total}"'
        self._show(f"<label><progress{full}></progress> {escape(line)}</label>")

    def end(self) -> None:
        """Leave the words alone: a bar without a total would move for ever."""
        self._show(escape(self._line))

    def _show(self, html: str) -> None:
        from IPython.display import display

        bundle = {"text/plain": self._line, "text/html": f"<div>{html}</div>"}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)
