"""Copying a buffer from the memory of one card to another's, without the host between them.

The first device writes into the arena where the buffer lies, once it is made, and keeps it as it
is: what would write to it waits. The second opens that memory, copies it, closes it, and says so in
the arena. Neither waits for the notebook, nor the notebook for them.

What is open is closed after each copy, so nothing is left open of a process that ends. Where the
second one ends in the middle, the first one keeps the buffer until that process is gone.

This way is off until it is asked for: a copy is not sent again after a loss.
"""

import itertools
from collections.abc import Callable, Hashable
from typing import Protocol

from accel_lab.actor.reply import Pump
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.block import Block
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import (
    FAILED,
    LET_GO,
    OPEN,
    TAIL_BYTES,
    TEXT_BYTES,
    WORD,
    Fetch,
    Offer,
)
from accel_lab.compute.message.operation import OWN_TIMEOUT
from accel_lab.compute.requests.requests import Requests
from accel_lab.compute.transfer.device_copy import Departure
from accel_lab.errors import AccelError

HOLDERS = 3
"""Both devices, and what hears of the first one's failure."""


class Closings(Protocol):
    """Tells when a device has closed what it had open; any thread."""

    def after(self, context: Hashable, call: Callable[[], object]) -> None:
        """Have something called once a context's process is gone, which was lost."""

    def until_closed(self, is_open: Callable[[], bool], call: Callable[[], object]) -> None:
        """Have something called once a thing is closed, or the process that has it open is gone."""


class Agreement:
    """The block in which two devices agree on one copy; any thread.

    Parameters:
        failed: called with why the first device cannot do its part.
    """

    def __init__(self, block: Block, failed: Callable[[AccelError], object]) -> None:
        self.block = block
        block.view[:TAIL_BYTES] = 0
        self._words = block.view[:TAIL_BYTES].data.cast("I")
        self._tell = failed
        self._over = itertools.count(1)
        self._lost: Hashable | None = None

    def give_up(self, lost: Hashable | None = None) -> None:
        """Be done with it; `lost` names the first device's process, which may still write."""
        if lost is not None:
            self._lost = lost
        if next(self._over) == HOLDERS:
            self._words.release()
            self.block.release(after=self._lost)

    @property
    def is_open(self) -> bool:
        """Whether the second device has the memory open; for whoever still holds the block."""
        return self._words[OPEN] != 0

    def let_go(self, *, reaped: bool = False) -> None:
        """Have the first device keep the buffer no more, once the second has closed it."""
        self._words[LET_GO] = 1
        if reaped:  # with a process goes what it had open
            self._words[OPEN] = 0

    def arrived(self) -> None:
        """Do nothing: the second device has said so itself."""

    def failed(self, error: AccelError) -> None:
        """Say that the buffer will never be had, and why."""
        text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace")
        text = text[:TEXT_BYTES]
        self.block.view.data[WORD : WORD + len(text)] = text
        self._words[0] = FAILED
        self._tell(error)


class DirectCopy:
    """One copy of a buffer by its card's peer.

    Parameters:
        target: the requests of the device that gets it.
        closings: tell when that device has closed something, or its process is gone.
        failed: called with why the first device cannot do its part.
    """

    def __init__(
        self,
        ref: AccelRef,
        target: Requests,
        arena: Arena,
        timeout_s: float,
        *,
        closings: Closings,
        failed: Callable[[AccelError], object],
    ) -> None:
        self._ref = ref
        self._shape, self._dtype = ref.shape, ref.dtype
        self._target = target
        self._closings = closings
        self._agreement = Agreement(arena.allocate(TAIL_BYTES, timeout_s=timeout_s), failed)
        self._departure: Departure | None = None
        self._is_asked = False

    def send(self, source: Requests) -> AccelRef:
        """Ask both devices; the first one first, so that no two copies wait for each other."""
        agreement = self._agreement
        at = agreement.block.segment_id, agreement.block.offset
        try:
            source.outbox.send(
                Offer(self._ref, *at), OWN_TIMEOUT, make=self._depart, settle=agreement.give_up
            )
            source.flush()
        except BaseException:
            if self._departure is not None:
                agreement.let_go()
                agreement.give_up()
            else:
                agreement.block.release()  # nothing was sent
            raise
        try:
            copied = self._target.outbox.send(
                Fetch(self._shape, self._dtype, *at),
                OWN_TIMEOUT,
                make=self._arrive,
                settle=self._settle,
            )
            self._target.flush()
        except BaseException:
            if not self._is_asked:
                self._settle(None)
            raise
        assert isinstance(copied, AccelRef)
        return copied

    def _depart(self, pump: Pump, _: int) -> Departure:
        self._departure = Departure(pump, self._agreement, self._agreement.give_up)
        return self._departure

    def _arrive(self, _: Pump, id_: int) -> AccelRef:
        self._is_asked = True
        return self._target.handles.of_buffer(id_, self._shape, self._dtype)

    def _settle(self, lost: Hashable | None) -> None:
        """The second device is done with it: it has answered, or never will."""
        agreement = self._agreement
        if lost is not None:
            self._closings.after(lost, self._closed)
            return
        agreement.let_go()
        if agreement.is_open:  # it closes that now, and says so in the block
            self._closings.until_closed(lambda: agreement.is_open, self._closed)
        else:
            agreement.give_up()

    def _closed(self) -> None:
        """What the second device had open is closed, or its process is gone."""
        self._agreement.let_go(reaped=True)
        self._agreement.give_up()
