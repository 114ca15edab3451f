"""A flag of one process that others wait for, without a device and without its driver."""

import os
import time
from enum import IntEnum
from typing import NamedTuple

from accel_lab.compute.shared.shared_file import OpenedFile, Place, SharedFile
from accel_lab.errors import OwnerGone
from accel_lab.uncopied import Uncopied

_FIRST_S, _LONGEST_S = 50e-6, 2e-3


class State(IntEnum):
    """What a flag says."""

    PENDING = 0
    REACHED = 1
    LOST = 2


class SharedFlag(SharedFile):
    """A flag of this process, which says nothing yet."""

    def __init__(self) -> None:
        super().__init__(1)

    def say(self, state: State) -> None:
        """Have those who wait learn it."""
        if self.fd >= 0:
            os.pwrite(self.fd, bytes([state]), 0)


class FlagPlace(NamedTuple):
    """What another process needs to wait for an event; it pickles.

    Attributes:
        place: of the flag.
    """

    place: Place

    def open(self) -> "OpenedFlag":
        """Open it, in any process of the same user on the same machine.

        Raises:
            OwnerGone: the process that had it has ended, or has let go of the event.
        """
        return OpenedFlag(self.place)


class OpenedFlag(Uncopied):
    """An event of another process."""

    _instead = "send what it was opened with"

    def __init__(self, place: Place) -> None:
        self._file = OpenedFile(place)

    def query(self) -> bool:
        """Whether the event is reached by now.

        Raises:
            OwnerGone: it never will be: its device has lost it, or its process has ended.
        """
        state = self._state()
        if state == State.PENDING:
            self._file.require_owner()
            state = self._state()  # it may have been the last that the owner said
        if state == State.LOST:
            pid = self._file.place.pid
            raise OwnerGone(f"the device of process {pid} has lost the event", pid=pid)
        return state == State.REACHED

    def wait(self, timeout_s: float | None = None) -> None:
        """Block until it is reached.

        Raises:
            OwnerGone: as `query`.
            TimeoutError: it took longer.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        pause_s = _FIRST_S
        while not self.query():
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"the event was not reached within {timeout_s:g} s")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_S)

    def _state(self) -> int:
        return os.pread(self._file.fd, 1, 0)[0]
