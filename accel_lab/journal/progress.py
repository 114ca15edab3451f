"""A bar for what takes longer than a second, in a terminal or a notebook."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET_S = 1.0
REFRESH_S = 0.1


class Bar:
    """Counts to `total`; shows nothing in the first second, and nothing where nobody looks."""

    def __init__(self, text: str, total: int, *, shown: bool = True) -> None:
        self._text = text
        self._total = total
        self._shown = shown
        self._next = time.monotonic() + QUIET_S
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def at(self, count: int) -> None:
        """So many are done."""
        if not self._shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + REFRESH_S
        progress = self._progress
        if progress is None:
            # Every process imports this module, and few draw a bar.
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
            progress = Progress(*columns, TimeRemainingColumn(), auto_refresh=False)
            if not (progress.console.is_terminal or progress.console.is_jupyter):
                self._shown = False
                return
            self._progress = progress
            progress.add_task(self._text, total=self._total)
            progress.start()
        progress.update(progress.task_ids[0], completed=count)
        progress.refresh()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            done = self._total if kind is None else None
            self._progress.update(self._progress.task_ids[0], completed=done)
            self._progress.stop()
