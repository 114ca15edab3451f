"""One rank of a communicator: what it sends and takes, in the order in which it was called.

It waits by looking: first it lets others run, then it sleeps, ever longer up to a millisecond.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.backends.host.collective.channels import PIECE_BYTES, Channels
from accel_lab.libraries.collective.errors import CommunicatorLost

Array = npt.NDArray[Any]
Fold = Callable[[Array, Array, Array], object]
"""Writes what two arrays fold to into the third, as `numpy.add`."""

_YIELDS = 64
_SLEEP_S = (20e-6, 1e-3)


class Outgoing:
    """An array on its way to a rank."""

    def __init__(self, peer: int, array: Array) -> None:
        self.peer = peer
        self._array = array
        self._step = max(1, PIECE_BYTES // array.itemsize)
        self._at = 0

    def advance(self, channels: Channels) -> int:
        """Send what there is room for; return how many bytes, or -1 once all is sent."""
        array, channel, sent = self._array, channels.to[self.peer], 0
        while self._at < array.size:
            piece = array[self._at : self._at + self._step]
            if not channel.send(piece.view(np.uint8)):
                return sent
            self._at += piece.size
            sent += piece.nbytes
        return sent or -1


class Incoming:
    """An array that a rank sends; `fold` makes of it and `mine` what is written.

    Parameters:
        into: where it goes, in C order.
        mine: the other operand of `fold`, of the same size; it may be `into`.
    """

    def __init__(
        self, peer: int, into: Array, fold: Fold | None = None, mine: Array | None = None
    ) -> None:
        self.peer = peer
        self._into, self._fold, self._mine = into, fold, into if mine is None else mine
        self._step = max(1, PIECE_BYTES // into.itemsize)
        self._at = 0

    def advance(self, channels: Channels) -> int:
        """Take what is there; return how many bytes, or -1 once all was taken."""
        into, channel, taken = self._into, channels.of[self.peer], 0
        while self._at < into.size:
            end = min(self._at + self._step, into.size)
            nbytes = (end - self._at) * into.itemsize
            piece = channel.piece(nbytes)
            if piece is None:
                return taken
            came, place = piece.view(into.dtype), slice(self._at, end)
            if self._fold is None:
                into[place] = came
            else:
                self._fold(self._mine[place], came, into[place])
            channel.take()
            self._at = end
            taken += nbytes
        return taken or -1


class Exchanges:
    """Moves arrays between the ranks; the base of a communicator.

    Attributes:
        sent_bytes: how much this rank has sent; for people.
        taken_bytes: how much it has taken.
    """

    def __init__(self, path: str, rank: int, size: int, alive: Callable[[], object]) -> None:
        self.rank, self.size = rank, size
        self.sent_bytes = self.taken_bytes = 0
        self._channels = Channels(path, rank, size)
        self._aborted = False
        self._tickets = self._turn = 0
        self._turns = threading.Condition()
        self._wait(self._channels.all_are_here, alive)

    def ticket(self) -> int:
        """Return the number of a call, in the order of these calls; dispatcher thread."""
        self._tickets += 1
        return self._tickets - 1

    def in_turn(self, ticket: int, work: Callable[[], object]) -> None:
        """Do what was called, when all that was called before is done; blocks.

        Raises:
            CommunicatorLost: it was aborted.
        """
        with self._turns:
            self._turns.wait_for(lambda: self._turn == ticket or self._aborted)
        self._require()
        try:
            with np.errstate(all="ignore"):  # what overflows is infinite, as on a GPU
                work()
        except BaseException:
            self.abort()  # what others have sent of this one is still in the channels
            raise
        with self._turns:
            self._turn += 1
            self._turns.notify_all()

    def abort(self) -> None:
        """End what waits; nothing is sent any more. Any thread."""
        with self._turns:
            self._aborted = True
            self._turns.notify_all()

    def close(self) -> None:
        """Nothing to do: the memory goes with the last view of it."""

    def exchange(self, sends: Sequence[Outgoing], takes: Sequence[Incoming]) -> None:
        """Send and take all of these side by side; blocks until that is done.

        Raises:
            CommunicatorLost: it was aborted.
        """
        sending, taking, channels = list(sends), list(takes), self._channels
        idle = 0
        while sending or taking:
            moved = 0
            for one in list(sending):
                done = one.advance(channels)
                if done < 0:
                    sending.remove(one)
                else:
                    self.sent_bytes += done
                    moved += done
            for other in list(taking):
                done = other.advance(channels)
                if done < 0:
                    taking.remove(other)
                else:
                    self.taken_bytes += done
                    moved += done
            if moved:
                idle = 0
            elif sending or taking:
                self._require()
                _rest(idle)
                idle += 1

    def _wait(self, ready: Callable[[], bool], alive: Callable[[], object]) -> None:
        idle = 0
        while not ready():
            alive()
            _rest(idle)
            idle += 1

    def _require(self) -> None:
        if self._aborted:
            raise CommunicatorLost("the communicator was aborted")


def _rest(idle: int) -> None:
    """Let others run, the longer the more often there was nothing to do."""
    if idle < _YIELDS:
        os.sched_yield()
    else:
        least, most = _SLEEP_S
        time.sleep(min(most, least * 2 ** min(10, (idle - _YIELDS) // 16)))
