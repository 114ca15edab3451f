"""What placement knows of one device, as it changes: its speed, and memory promised there."""

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Self

from accel_lab.compute.device import Device
from accel_lab.compute.events.placement import Figures

SAMPLE = 4
"""After so many answers the speed of a device is looked at again."""
FRESH_S = 0.0005
"""How old a count of outstanding messages may be where there is room: reading the wires of four
devices takes ten times as long as sending a message to one. A longer time saves little more."""
NEWS_S = 1.5
"""How long after an answer the memory that a device tells of is surely what it was then."""


class Speed:
    """How long a device takes for one message, from what it has answered while it was busy.

    Attributes:
        seconds: for one message; 0 while that is not known.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since: tuple[float, int] | None = None  # it has been busy since, and had answered

    def look(self, now: float, answered: int, *, busy: bool) -> None:
        """Take in how many messages a device has answered by now."""
        if not busy:
            self._since = None
        elif self._since is None:
            self._since = now, answered
        elif (done := answered - self._since[1]) >= SAMPLE:
            seen = (now - self._since[0]) / done
            self.seconds = (self.seconds + seen) / 2 if self.seconds else seen
            self._since = now, answered


class Reservation:
    """Memory of one device that placement gives to nobody else, until it is closed.

    A context that is lost gives it back, too. It keeps messages away that are placed with a need
    of memory; what is sent to the device itself is not held up. Close it when the memory is taken.
    """

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device, self.nbytes = device, nbytes
        self._generation, self._closed = device.generation, False

    @property
    def is_held(self) -> bool:
        """Whether the memory is still reserved."""
        lost = self.device.generation != self._generation
        return not (self._closed or lost or self.device.state in ("circuit open", "stopped"))

    def close(self) -> None:
        """Give it back. Safe to repeat."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        held = "held" if self.is_held else "given back"
        return f"<Reservation of {self.nbytes:,} bytes on {self.device.name}, {held}>"


class Measured:
    """One device and its figures; the caller holds placement's lock."""

    def __init__(self, device: Device, clock: Callable[[], float] = time.monotonic) -> None:
        self.device, self.last_placed = device, 0
        self.reservations: list[Reservation] = []
        self._clock, self._speed = clock, Speed()
        self._promised: deque[tuple[int, int]] = deque()  # until message, bytes
        self._answered: deque[tuple[float, int]] = deque()  # since, bytes
        self._promised_bytes = 0
        self._read_at = -math.inf
        self._name = device.name

    def promise(self, nbytes: int) -> None:
        """Count a message's memory until it is answered and the device tells of it."""
        self._promised.append((self.device.last_number, nbytes))
        self._promised_bytes += nbytes

    def figures(self, *, fresh: bool = False) -> Figures:
        """Return what is known now.

        Parameters:
            fresh: read what the device has answered, also where that was done a moment ago.
        """
        device, now = self.device, self._clock()
        state = device.state
        if state == "circuit open":
            device.probe()  # nothing else would, for nothing is sent there
            state = device.state
        if fresh or now - self._read_at >= FRESH_S:
            outstanding, self._read_at = device.outstanding, now
            self._speed.look(now, device.last_number - outstanding, busy=outstanding > 0)
        else:
            outstanding = device.unanswered
        free = device.free_bytes
        if free is not None and (self._promised_bytes or self.reservations):
            self._settle(now)
            self.reservations = [one for one in self.reservations if one.is_held]
            free -= self._promised_bytes + sum(one.nbytes for one in self.reservations)
        seconds, capability = self._speed.seconds, device.capability
        # Several of these for each message: without a call with names it takes half the time.
        return Figures._make(
            (self._name, state, outstanding, seconds, free, capability, self.last_placed)
        )

    def _settle(self, now: float) -> None:
        """Forget the promises of messages that are answered, which the device tells of itself."""
        oldest = self.device.first_unanswered if self._promised else None
        while self._promised and (oldest is None or self._promised[0][0] < oldest):
            self._answered.append((now, self._promised.popleft()[1]))
        while self._answered and now - self._answered[0][0] > NEWS_S:
            self._promised_bytes -= self._answered.popleft()[1]
