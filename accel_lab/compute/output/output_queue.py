"""What contexts print and display, on its way to the cells of the notebook.

Each write to a notebook's stream is a message to its front end, which takes thousands in a second
badly. So what comes within a twentieth of a second is written together, and whoever waits for a
request writes what is there before the answer is taken: no cell ends before its own output.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.compute.events.lifecycle import OutputPrinted
from accel_lab.compute.output.cell_origin import Origin
from accel_lab.compute.output.displays import Act, Cleared

PAUSE_S = 0.05


class _Piece(NamedTuple):
    where: Origin
    stream: str
    device: str
    text: str
    act: Act | None = None


class OutputQueue:
    """Text and displays that wait to be shown; any thread may add to them and write them."""

    def __init__(self, event_loop: EventLoop, events: EventStream) -> None:
        self._event_loop = event_loop
        self._events = events
        self._held: deque[_Piece] = deque()
        self._writing = threading.RLock()  # a stream of the user's may wait for an answer itself
        self._at_work = 0
        self._due = False
        self._next = 0.0

    def add(self, where: Origin, stream: str, text: str, device: str = "") -> None:
        """Have text written soon; does not block. What has no device is in no event."""
        self._hold(_Piece(where, stream, device, text))

    def show(self, where: Origin, act: Act) -> None:
        """Have something shown soon, behind the text that is there; does not block."""
        self._hold(_Piece(where, "", "", "", act))

    def _hold(self, piece: _Piece) -> None:
        self._held.append(piece)
        if not self._due:
            self._write_in(self._next - time.monotonic())

    @property
    def waiting(self) -> bool:
        """Whether there is something to write, or somebody has not written it yet."""
        return bool(self._held) or self._at_work > 0

    def write(self) -> None:
        """Write what is there; blocks as the notebook's streams do."""
        with self._writing:
            self._at_work += 1
            try:
                pieces = []
                while self._held:
                    pieces.append(self._held.popleft())
                for (where, stream, device), run in groupby(_lasting(pieces), itemgetter(0, 1, 2)):
                    self._write(where, stream, device, run)
            finally:
                self._at_work -= 1

    def _write(self, where: Origin, stream: str, device: str, run: Iterable[_Piece]) -> None:
        """Write what is of one kind and follows each other."""
        if not stream:
            for piece in run:
                if piece.act is not None:
                    where.show(piece.act)
            return
        text = "".join(piece.text for piece in run)
        if device:
            fact = OutputPrinted(device=device, stream=stream, text=text, cell=where.cell)
            self._events.publish(fact)
        where.write(stream, text)

    def _write_in(self, delay_s: float) -> None:
        self._due = True
        self._event_loop.call_later(max(0.0, delay_s), self._write_due)

    def _write_due(self) -> None:
        """Write on the patient thread, which does not wait for who writes already."""
        self._due = False
        if not self._writing.acquire(blocking=False):
            self._write_in(PAUSE_S)
            return
        try:
            self.write()
        finally:
            self._writing.release()
        self._next = time.monotonic() + PAUSE_S


def _lasting(pieces: list[_Piece]) -> list[_Piece]:
    """Leave out displays that the next would replace before anybody sees them."""
    if all(piece.act is None for piece in pieces):
        return pieces
    updated: set[str] = set()
    followed: set[Origin] = set()  # by something that a clearing may wait for
    cleared: set[Origin] = set()
    lasting: list[_Piece] = []
    for piece in reversed(pieces):
        where, act = piece.where, piece.act
        if isinstance(act, Cleared):
            if where in cleared:
                continue
            if where in followed or not act.wait:
                cleared.add(where)
        elif act is not None and act.update:
            name = str(act.transient["display_id"])
            if name in updated:
                continue
            updated.add(name)
        elif act is not None and where in cleared:
            continue
        else:
            followed.add(where)
        lasting.append(piece)
    return lasting[::-1]
