"""A bar for what takes longer than a second, in a terminal or a notebook."""

import asyncio
import sys
import time
from html import escape
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from accel_lab.display.sizes import memory

QUIET_S = 1.0
REFRESH_S = 0.1
Unit = Literal["", "bytes"]


class Bar:
    """Shows how much is done; nothing in the first second, and nothing where nobody looks.

    Parameters:
        text: what is done.
        total: of how much; None when that cannot be told, and only the time is shown.
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
        self._ticking: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def at(self, count: int) -> None:
        """So much is done."""
        if not self._shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + REFRESH_S
        if self._drawing is None:
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
        if self._ticking is not None:
            self._ticking.cancel()
        if self._drawing is not None:
            if kind is None:
                total = self._total or 0
                self._drawing.draw(self._line(total), total, self._total)
            self._drawing.end()

    def _line(self, count: int) -> str:
        seconds = f"{time.monotonic() - self._began:.1f} s"
        if self._total is None:
            return f"{self._text}: {seconds}"
        of = f"{count} of {self._total}"
        if self._unit == "bytes":
            of = memory(count, self._total)
        return f"{self._text}: {of}, {seconds}"


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
    return _InTerminal() if sys.stdout.isatty() else None


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
