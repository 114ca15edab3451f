"""Keep a context process of the host: it is stopped, and goes on.

Runs in the notebook.
"""

import os
import signal
import time
from pathlib import Path

from accel_lab.errors import LibraryError

STOPPED = frozenset("tT")
STOPS_WITHIN_S = 5.0
LOOK_S = 0.001


class HostProcessKeeper:
    """Stops processes by SIGSTOP."""

    ends_frozen = False

    def freeze(self, pid: int, timeout_s: float) -> None:  # noqa: ARG002 - it takes no time
        """Stop a process, and wait until it is.

        Raises:
            LibraryError: there is no such process any more, or it does not stop.
        """
        try:
            os.kill(pid, signal.SIGSTOP)
            until = time.monotonic() + STOPS_WITHIN_S
            while _state(pid) not in STOPPED:
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGCONT)
                    raise _error(f"process {pid} did not stop within {STOPS_WITHIN_S:g} s")
                time.sleep(LOOK_S)
        except (ProcessLookupError, FileNotFoundError) as error:
            raise _error(f"process {pid} has ended") from error

    def thaw(self, pid: int) -> None:
        """Have it go on.

        Raises:
            LibraryError: there is no such process any more.
        """
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError as error:
            raise _error(f"process {pid} has ended") from error


def _state(pid: int) -> str:
    """Return the letter by which the kernel tells what a process does."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]


def _error(text: str) -> LibraryError:
    return LibraryError(text, library="suspension", name="PROCESS")
