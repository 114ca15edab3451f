"""What happens to a cell's requests when it is interrupted: by Ctrl-C, or a notebook's ■.

The first time they are taken back, and the cell waits for a moment while one of them still runs,
for a cell that has ended hears no second one. The second time the context is replaced.
"""

import time
from collections.abc import Callable
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.cancellation import Cancellation
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.wire.link import Link

SECOND_INTERRUPT_S = 3.0
SOON_S = 0.3
"""What ends within this time after an interrupt is not told of."""
LOOK_S = 0.05


class StopButton:
    """The interrupts that the requests of one device have met; whichever thread waits.

    Attributes:
        patience_s: how long an interrupted cell waits for what still runs, so that ■ can be
            pressed again.
        read: reads the wire until a reply is done, or so many seconds are over.
        replace_code: returns code that replaces the context when it is typed.

    Parameters:
        replace: replaces the context, whatever it is doing.
    """

    read: Callable[[Reply[Any], float], None]
    replace_code: Callable[[], str]

    def __init__(
        self,
        connection: Connection,
        cancellation: Cancellation,
        queue: SendQueue,
        replace: Callable[[str], object],
    ) -> None:
        self.patience_s = SECOND_INTERRUPT_S
        self._connection = connection
        self._cancellation = cancellation
        self._queue = queue
        self._replace_context = replace
        self._pressed = float("-inf")
        self._pressed_on: Link | None = None
        self._stopped_at = 0
        """The last request of which was said whether it is taken back."""

    def interrupted(self, reply: Reply[Any]) -> None:
        """Take back what the cell has sent that `reply` is of; the second time, replace.

        Blocks for 3 s at most while the device still runs one of them.
        """
        since = time.monotonic() - self._pressed
        if since < SECOND_INTERRUPT_S and self._connection.link is self._pressed_on:
            self._replace()
            return
        try:
            self._outlast(self._take_back(reply.origin))
        except KeyboardInterrupt:
            self._replace()

    def stop(self, cell: object, /) -> Callable[[], object]:
        """Take back what a stopped cell has sent and `interrupted` has not; return what waits."""
        unanswered = self._cancellation.unanswered()
        if not any(r.origin is cell for seq, r in unanswered if seq > self._stopped_at):
            return _nothing
        try:
            seqs = self._take_back(cell)
        except KeyboardInterrupt:
            return self._replace

        def outlast() -> None:
            try:
                self._outlast(seqs)
            except KeyboardInterrupt:
                self._replace()

        return outlast

    def _take_back(self, cell: object) -> list[int]:
        """Take a cell's requests back, and say so."""
        connection, here = self._connection, cell_origin.current()
        self._pressed, self._pressed_on = time.monotonic(), connection.link
        here.stopped = True
        seqs, self._stopped_at = self._cancellation.cancel_of(cell), self._queue.last
        number = getattr(cell, "cell", None)
        whose = "this cell" if cell is here or number is None else f"cell {number}"
        taken = f"{len(seqs)} requests of {whose} to {connection.name} were cancelled"
        if len(seqs) == 1:
            taken = f"1 request of {whose} to {connection.name} was cancelled"
        here.say(f"interrupted; {taken}.")
        return seqs

    def _outlast(self, seqs: list[int]) -> None:
        """Wait a little for what runs to end; without a context nothing runs."""
        connection, link = self._connection, self._connection.link
        began, told = time.monotonic(), False
        while link is not None and link is connection.link:
            left = self._cancellation.first_pending(seqs)
            passed = time.monotonic() - began
            if left is None:
                break
            if passed >= self.patience_s:
                self._pressed = time.monotonic()
                text = f"still running on {connection.name}. Stop it with: {self.replace_code()}"
                cell_origin.current().say(text)
                return
            if passed >= SOON_S and not told:
                told = True
                cell_origin.current().say(
                    f"it still runs on {connection.name}: interrupt (■) again within "
                    f"{self.patience_s:g} s to replace the context."
                )
            self.read(left, min(self.patience_s - passed, LOOK_S))
        self._pressed = float("-inf")  # what is interrupted next is another matter

    def _replace(self) -> None:
        self._pressed = float("-inf")  # the next one does not concern the next context
        here = cell_origin.current()
        here.stopped = True
        here.say(f"interrupted again; the context of {self._connection.name} is replaced.")
        self._replace_context("interrupted twice within 3 s")


def _nothing() -> None:
    """Wait for nothing."""
