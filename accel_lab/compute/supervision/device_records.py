"""What a device's own records say of it, as its context tells when it is asked."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from accel_lab.compute.events.device_work import DeviceWork
from accel_lab.compute.wire.side_channel import Downward, Flush, Recorded
from accel_lab.errors import TelemetryUnavailable

KEPT = 1_000_000
"""So many records are kept of a device, the newest."""


class Done(NamedTuple):
    """One kernel, copy or fill, on which device, and which notebook cell has sent its message.

    Attributes:
        cell: its number; None of a program, or where no message was.
        work: the rest.
    """

    device: str
    cell: int | None
    work: DeviceWork


class Profile(NamedTuple):
    """What the devices did.

    Attributes:
        done: everything that has ended since the system was opened, in the order of its end.
        dropped: how many records are missing, for they were too many.
        losses: how many contexts were lost, each with the records that it had not told.
    """

    done: tuple[Done, ...]
    dropped: int
    losses: int

    def __repr__(self) -> str:
        missing = f", {self.dropped} dropped" if self.dropped else ""
        return f"<Profile of {len(self.done)} records{missing}>"


def joined(parts: Iterable[Profile]) -> Profile:
    """Return one profile of several devices."""
    all_of = list(parts)
    done = sorted((one for part in all_of for one in part.done), key=lambda one: one.work.end)
    dropped = sum(part.dropped for part in all_of)
    return Profile(tuple(done), dropped, sum(part.losses for part in all_of))


class DeviceRecords:
    """The records of one device; any thread asks, the system thread hears.

    Parameters:
        ask: sends the context a packet; returns whether there is one.
        cell_of: tells which notebook cell has sent a message.
    """

    def __init__(
        self, name: str, ask: Callable[[Downward], bool], cell_of: Callable[[int], int | None]
    ) -> None:
        self._name = name
        self._ask = ask
        self._cell_of = cell_of
        self._asking = threading.Lock()
        self._told = threading.Condition()
        self._number = 0  # of the question that was asked last
        self._waits = False
        self._why = ""
        self._done: deque[Done] = deque()
        self._dropped = self._losses = 0

    def take(self, timeout_s: float) -> Profile:
        """Ask the context; return all that is known by then.

        Raises:
            TelemetryUnavailable: CUPTI has failed.
            TimeoutError: the context gives no answer in time.
        """
        with self._asking, self._told:
            self._number += 1
            self._waits, self._why = True, ""
            there = self._ask(Flush(self._number))
            if there and not self._told.wait_for(lambda: not self._waits, timeout_s):
                raise TimeoutError(f"{self._name} tells no records within {timeout_s:g} s")
            if self._why:
                raise TelemetryUnavailable(f"{self._name}: {self._why}")
            return Profile(tuple(self._done), self._dropped, self._losses)

    def heard(self, packet: Recorded) -> None:
        """Take a part of an answer."""
        with self._told:
            for work in packet.works:
                cell = self._cell_of(work.seq) if work.seq else None
                self._done.append(Done(self._name, cell, work))
            self._dropped += packet.dropped
            while len(self._done) > KEPT:
                self._done.popleft()
                self._dropped += 1
            if packet.last and packet.number == self._number:  # else nobody waits for it any more
                self._waits, self._why = False, packet.why
                self._told.notify_all()

    def lost(self) -> None:
        """Its context is gone, and with it what that had not told."""
        with self._told:
            self._losses += 1
            self._waits = False
            self._told.notify_all()
