"""Copying a buffer from one device to another through the host arena, without waiting for either.

The first device writes into a block. The notebook notes in a word behind the contents that they
are there, and the second device, which has begun to wait for that, reads them.
"""

import itertools
from collections.abc import Callable, Hashable
from typing import Any, Protocol

from accel_lab.actor.reply import Pump, Reply
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.block import Block
from accel_lab.compute.lineage.markers import Checkpoint
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import (
    ARRIVED,
    FAILED,
    TAIL_BYTES,
    WORD,
    Download,
    Receive,
    tail_of,
)
from accel_lab.compute.message.operation import OWN_TIMEOUT
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.requests import Requests
from accel_lab.errors import AccelError

HOLDERS = 3
"""The first device, the second, and what notes that the contents are there, and keeps them."""


class Passage:
    """The block of one copy, until everybody is done with it; any thread."""

    def __init__(self, block: Block, nbytes: int) -> None:
        self.block = block
        self.nbytes = nbytes
        self._tail = tail_of(nbytes)
        block.view[self._tail :] = 0
        self._words = block.view[self._tail :].data.cast("I")
        self._given_up = itertools.count(1)
        self._lost: list[Hashable] = []

    def give_up(self, lost: Hashable | None = None) -> None:
        """Be done with it; `lost` names a process that may still read or write."""
        if lost is not None:
            self._lost.append(lost)
        if next(self._given_up) == HOLDERS:
            self._words.release()
            # Of two lost processes only one can be waited for: the memory then stays set aside.
            if len(self._lost) <= 1:
                self.block.release(after=next(iter(self._lost), None))

    def arrived(self) -> None:
        """Say that the contents are there."""
        self._words[0] = ARRIVED

    def failed(self, error: AccelError) -> None:
        """Say that they will never be, and why."""
        begin = self._tail + WORD
        text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace")
        text = text[: TAIL_BYTES - WORD]
        self.block.view.data[begin : begin + len(text)] = text
        self._words[0] = FAILED


class Told(Protocol):
    """Hears what becomes of a buffer that a device gives away."""

    def arrived(self) -> None:
        """The device has done its part."""

    def failed(self, error: AccelError) -> None:
        """It never will, and why."""


class Departure(Reply[None]):
    """The answer of the first device; nobody waits for it but the second."""

    __slots__ = ("_over", "_passage")

    def __init__(self, pump: Pump, passage: Told, over: Callable[[], object]) -> None:
        super().__init__(pump, cell_origin.current())
        self._passage, self._over = passage, over

    def resolve(self, value: Any = None) -> None:
        """The block has been filled."""
        if not self.done:
            self._passage.arrived()
            super().resolve(value)
            self._over()

    def reject(self, error: AccelError) -> None:
        """It never will be; that is told as the failure of the copy, and not twice."""
        if not self.done:
            self._passage.failed(error)
            self.detach()
            super().reject(error)
            self._over()


class DeviceCopy:
    """One copy of a buffer, and what the record keeps of it.

    Parameters:
        target: the requests of the device that gets it.
        kept_bytes: how large a buffer may be of which the record keeps the contents.
    """

    def __init__(
        self, ref: AccelRef, target: Requests, arena: Arena, timeout_s: float, kept_bytes: int
    ) -> None:
        self._ref = ref
        self._shape, self._dtype, nbytes = ref.shape, ref.dtype, ref.nbytes
        self._target = target
        self._recorder = target.recorder if nbytes <= kept_bytes else None
        room = tail_of(nbytes) + TAIL_BYTES
        self._passage = Passage(arena.allocate(room, timeout_s=timeout_s), nbytes)
        self._departure: Departure | None = None
        self._seq = self._id = 0
        self._over = itertools.count(1)

    def send(self, source: Requests) -> AccelRef:
        """Ask both devices; the first one first, so that no two copies wait for each other."""
        block, passage = self._passage.block, self._passage
        at = block.segment_id, block.offset
        try:
            source.outbox.send(
                Download(self._ref, *at, nbytes=passage.nbytes),
                OWN_TIMEOUT,
                make=self._depart,
                settle=passage.give_up,
            )
            source.flush()
        except BaseException:
            if self._departure is None:
                block.release()  # nothing was sent
            else:
                passage.give_up()
                self._end()
            raise
        message = Receive(self._shape, self._dtype, *at, passage.nbytes)
        try:
            copied = self._target.outbox.send(
                message, OWN_TIMEOUT, make=self._arrive, settle=passage.give_up
            )
            self._target.flush()
        except BaseException:
            if not self._seq:
                passage.give_up()
            raise
        finally:
            self._end()
        assert isinstance(copied, AccelRef)
        return copied

    def _depart(self, pump: Pump, _: int) -> Departure:
        self._departure = Departure(pump, self._passage, self._end)
        return self._departure

    def _arrive(self, _: Pump, id_: int) -> AccelRef:
        self._id, self._seq = id_, self._target.last_number
        return self._target.handles.of_buffer(id_, self._shape, self._dtype)

    def _end(self) -> None:
        """Have the contents kept, when they are there and the second device is asked."""
        if next(self._over) == 1:
            return
        departure = self._departure
        if self._recorder is None or not self._seq or departure is None or departure.failed:
            self._passage.give_up()
        else:
            self._recorder.later(self._keep)

    def _keep(self) -> Checkpoint:
        assert self._recorder is not None
        contents = self._passage.block.view.data[: self._passage.nbytes]
        key = self._recorder.contents.put(contents)
        self._passage.give_up()
        return Checkpoint(self._id, self._seq, key or "", self._shape, self._dtype)
