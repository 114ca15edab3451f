"""What contexts print, on its way to the cells of the notebook.

Each write to a notebook's stream is a message to its front end, which takes thousands in a second
badly. So what comes within a twentieth of a second is written together, and whoever waits for a
request writes what is there before the answer is taken: no cell ends before its own output.
"""

import threading
import time
from collections import deque
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from accel_lab.actor.dispatcher import Dispatcher
from accel_lab.actor.events import EventStream
from accel_lab.compute.events import OutputPrinted
from accel_lab.compute.origin import Origin

PAUSE_S = 0.05


class _Piece(NamedTuple):
    where: Origin
    stream: str
    device: str
    text: str


class Outputs:
    """Text that waits to be shown; any thread may add to it and write it."""

    def __init__(self, dispatcher: Dispatcher, events: EventStream) -> None:
        self._dispatcher = dispatcher
        self._events = events
        self._held: deque[_Piece] = deque()
        self._writing = threading.RLock()  # a stream of the user's may wait for an answer itself
        self._due = False
        self._next = 0.0

    def add(self, where: Origin, stream: str, text: str, device: str = "") -> None:
        """Have text written soon; does not block. What has no device is in no event."""
        self._held.append(_Piece(where, stream, device, text))
        if not self._due:
            self._write_in(self._next - time.monotonic())

    @property
    def waiting(self) -> bool:
        """Whether there is something to write."""
        return bool(self._held)

    def write(self) -> None:
        """Write what is there; blocks as the notebook's streams do."""
        with self._writing:
            pieces = []
            while self._held:
                pieces.append(self._held.popleft())
            for (where, stream, device), run in groupby(pieces, itemgetter(0, 1, 2)):
                text = "".join(piece.text for piece in run)
                if device:
                    fact = OutputPrinted(device=device, stream=stream, text=text, cell=where.cell)
                    self._events.publish(fact)
                where.write(stream, text)

    def _write_in(self, delay_s: float) -> None:
        self._due = True
        self._dispatcher.call_later(max(0.0, delay_s), self._write_due)

    def _write_due(self) -> None:
        """Write on the system thread, which waits for nobody who writes already."""
        self._due = False
        if not self._writing.acquire(blocking=False):
            self._write_in(PAUSE_S)
            return
        try:
            self.write()
        finally:
            self._writing.release()
        self._next = time.monotonic() + PAUSE_S
