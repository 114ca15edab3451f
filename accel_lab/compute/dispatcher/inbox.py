"""Messages that a context has received and not yet executed, in their order."""

import itertools
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from accel_lab.compute.dispatcher.decoding import Entries
from accel_lab.compute.dispatcher.deferral import Deferral
from accel_lab.compute.execution.context import Context
from accel_lab.compute.wire.transport import Transport

LOOKS = 16
YIELD_AFTER_S = 0.00005


class Inbox:
    """Waits for frames and decodes them; used by the dispatcher thread.

    Parameters:
        spin_s: for how long a frame is waited for without sleeping.
    """

    def __init__(self, transport: Transport, context: Context, *, spin_s: float) -> None:
        self._transport = transport
        self._entries = Entries(context)
        self._spin_s = spin_s
        self._at_hand: list[Any] = []
        self._ahead: deque[Any] = deque()
        self._released: deque[Any] = deque()  # what has waited for something deferred

    def wait(self, deferral: Deferral, *, busy: bool) -> memoryview | None:
        """Wait for a frame, at first without sleeping; None where something deferred is ready.

        Parameters:
            busy: whether answers are being worked out, which may fail.

        Raises:
            EOFError: the wire has ended.
        """
        transport = self._transport
        if self._spin_s:
            begin = now = time.perf_counter()
            while now - begin < self._spin_s:
                for _ in range(LOOKS):
                    frame = transport.receive()
                    if frame is not None or deferral.ready:
                        return frame
                if now - begin > YIELD_AFTER_S:
                    os.sched_yield()  # the notebook may share this core
                now = time.perf_counter()
        if transport.sleep():
            either = busy or deferral.begun or deferral.ready
            transport.wait(also=deferral.wakeup if either else -1)
            transport.wake()
        frame = transport.receive()
        if frame is None and not deferral.ready:
            deferral.acknowledge()  # what rang was taken before; what rings now is seen next
        return frame

    def open(self, frame: memoryview) -> list[Any]:
        """Return the entries of a frame, to be executed before the next is opened."""
        self._at_hand = entries = self._entries.decode(frame)
        return entries

    def read_ahead(self) -> None:
        """Read what has come, while an entry is executed; `ahead` has it afterwards."""
        while (frame := self._transport.receive()) is not None:
            self._ahead += self._entries.decode(frame)

    def ahead(self) -> Iterator[Any]:
        """Take what was read ahead, one after the other."""
        while self._ahead:
            yield self._ahead.popleft()

    def released(self, entries: Iterable[Any]) -> Iterator[Any]:
        """Take what does not wait any more for something deferred, one after the other."""
        self._released += entries
        while self._released:
            yield self._released.popleft()

    def since(self, executing: Any) -> Iterator[Any]:
        """Return what is executed, and after it what has come, in order."""
        # Of the frame at hand those before it are done: all, where this one was deferred.
        rest = itertools.dropwhile(lambda entry: entry is not executing, self._at_hand)
        return itertools.chain((executing,), self._released, rest, self._ahead)
