"""What is new of the notebook itself, for one observer: its cells and its waits."""

import time

from accel_lab.compute.events.samples import CellRun, HostWait, NotebookSampled
from accel_lab.compute.output.cell_log import CELLS, CellLog
from accel_lab.host_waits import HOST_WAITS, LEAST_S, HostWaits


class NotebookNews:
    """Tells each cell and each wait once when it has begun, and once when it has ended."""

    def __init__(self, cells: CellLog = CELLS, waits: HostWaits = HOST_WAITS) -> None:
        self._cells = cells
        self._waits = waits
        self._changes = 0
        self._ended = self._waited = -float("inf")
        self._waiting = 0.0

    def look(self) -> NotebookSampled | None:
        """Return what is new; None where nothing is. One thread at a time."""
        cells: tuple[CellRun, ...] = ()
        if (changes := self._cells.changes) != self._changes:
            self._changes = changes
            found = self._cells.after(self._ended)
            self._ended = max((one.end for one in found if one.end), default=self._ended)
            cells = tuple(found)
        since = self._waits.since
        waits = [HostWait(*one) for one in self._waits.after(self._waited)]
        self._waited = max((one.end for one in waits if one.end), default=self._waited)
        if since > self._waited and since != self._waiting and time.time() - since >= LEAST_S:
            self._waiting = since
            waits.append(HostWait(since, None))
        if not cells and not waits:
            return None
        return NotebookSampled(cells=cells, waits=tuple(waits))
