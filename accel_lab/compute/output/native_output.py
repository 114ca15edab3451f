"""What C code and child processes in a context write to a stream of the process.

Which request wrote it cannot be told: it appears under the cell that runs, or ran last.
"""

import codecs
import os
import threading

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.output import cell_origin
from accel_lab.compute.output.output_queue import OutputQueue
from accel_lab.compute.output.printing import LIMIT, not_shown

PART = 1 << 16
QUIET_S = 0.5
"""After how long without more it is said how much was not shown."""


class Pipe:
    """The notebook's end of one stream, shown as far as a cell may print; any thread."""

    def __init__(self, fd: int, stream: str, outputs: OutputQueue, event_loop: EventLoop) -> None:
        self._fd = fd
        self._stream = stream
        self._outputs = outputs
        self._event_loop = event_loop
        self._lock = threading.Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._where = cell_origin.current()
        self._left = LIMIT
        self._dropped = 0
        os.set_blocking(fd, False)
        event_loop.add_reader(fd, self.read)

    def read(self) -> None:
        """Take what is there, a cell's worth at most; does not block."""
        with self._lock:
            for _ in range(LIMIT // PART):
                try:
                    data = os.read(self._fd, PART) if self._fd >= 0 else b""
                except BlockingIOError:
                    return
                if not data:
                    self._close()
                    return
                self._take(self._decoder.decode(data))

    def settle(self) -> None:
        """Take what a request has written that has ended, and say how much is not shown."""
        self.read()
        with self._lock:
            self._tell()

    def close(self) -> None:
        """Take what is left; nothing comes any more."""
        self.read()
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._tell()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._event_loop.remove_reader(fd)
            os.close(fd)

    def _take(self, text: str) -> None:
        where = cell_origin.current()
        if where is not self._where:
            self._tell()
            self._where, self._left = where, LIMIT
        shown = text[: self._left]
        self._left -= len(shown)
        if shown:
            self._outputs.add(where, self._stream, shown)
        if len(shown) < len(text):
            if not self._dropped:
                self._event_loop.call_later(QUIET_S, self._tell_when_quiet, 0)
            self._dropped += len(text) - len(shown)

    def _tell(self) -> None:
        dropped, self._dropped = self._dropped, 0
        if dropped:
            self._outputs.add(self._where, self._stream, not_shown(dropped))

    def _tell_when_quiet(self, before: int) -> None:
        with self._lock:
            if self._dropped == before:
                self._tell()
            elif self._dropped:
                self._event_loop.call_later(QUIET_S, self._tell_when_quiet, self._dropped)
