"""Which cells of the notebook ran, and when: the newest, for the views that draw them."""

import time
from collections import OrderedDict
from typing import Any

from accel_lab.compute.events.samples import CellRun, Ended

KEPT = 1_000
"""So many cells are kept, the newest."""
LINE = 120  # characters of a cell's first line
_TAKEN_BACK = ("KeyboardInterrupt", "CancelledError")


class CellLog:
    """The cells of one notebook; its thread adds to it, any thread reads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[float, CellRun] = OrderedDict()  # by when they began
        self._open: CellRun | None = None
        self._inside = 0  # cells that the open one runs, as `%%capture` does
        self._whole = False  # whether its begin was seen, not only that it runs
        self.changes = 0
        """Another number when there is more to tell."""

    def begin(self, number: int, source: str, *, seen: bool = True) -> None:
        """Note that a cell begins; `seen` is false of one that has begun before."""
        if self._open is not None and self._open.number == number and self._whole:
            self._inside += 1
            return
        if self._open is not None and not self._whole:
            self._kept.pop(self._open.start, None)
        elif self._open is not None:  # nobody has told its end
            self._put(self._open, "done")
        line = next((line.strip() for line in source.splitlines() if line.strip()), "")
        self._inside, self._whole = 0, seen
        self._open = one = CellRun(number, line[:LINE], time.time(), None)
        self._kept[one.start] = one
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self.changes += 1

    def end(self, error: BaseException | None) -> None:
        """Note that the cell has ended, with `error` or in order."""
        if self._inside:
            self._inside -= 1
            return
        if self._open is None:
            return
        word: Ended = "done"
        if error is not None:
            word = "cancelled" if type(error).__name__ in _TAKEN_BACK else "failed"
        self._put(self._open, word)
        self._open = None

    def _put(self, one: CellRun, ended: Ended) -> None:
        if one.start in self._kept:
            self._kept[one.start] = CellRun(one.number, one.line, one.start, time.time(), ended)
            self.changes += 1

    def after(self, moment: float) -> list[CellRun]:
        """Return the cells that began later than a moment, and those that ended later."""
        while True:
            try:
                kept = list(self._kept.values())
            except RuntimeError:  # one was added meanwhile
                continue
            return [one for one in kept if one.end is None or one.end > moment]


CELLS = CellLog()


def first_seen(shell: Any) -> str:
    """Return the text of the cell that an IPython runs now; empty where that is not known."""
    typed = getattr(getattr(shell, "history_manager", None), "input_hist_raw", None)
    return str(typed[-1]) if typed else ""
