"""What user code in a context prints and displays: sent to the cell whose request is running.

What one request prints and displays is bounded, so that a loop does not fill the notebook.
"""

import contextlib
import io
import sys
import threading
from typing import Protocol

from accel_lab.compute.output.displays import Act, Cleared, Shown, packed, parts_of
from accel_lab.compute.wire.codec import Output, Report

PIECES_HELD = 100
PART = 1 << 16
LIMIT = 1 << 20
"""How many characters of one request are shown."""
DISPLAYS = 1_000
DISPLAYS_BYTES = 64 << 20
"""How much one request displays since it last cleared that; updates take the place of others."""


class Sender(Protocol):
    """Who takes the text to the notebook."""

    @property
    def busy_seq(self) -> int:
        """The request in execution, or 0."""

    def send(self, reports: list[Report]) -> None:
        """Send reports; blocks while the notebook does not read."""

    def offer(self, reports: list[Report]) -> bool:
        """Send reports if that need not wait; whether it did."""


class Printer(io.TextIOBase):
    """A text stream whose lines appear under a cell."""

    def __init__(self, sender: Sender, stream: str) -> None:
        self._sender = sender
        self._stream = stream
        self._line: list[str] = []
        self._writing = threading.RLock()
        self._start(0)

    def _start(self, seq: int) -> None:
        self._seq = seq
        self._left = LIMIT
        self._dropped = 0

    def writable(self) -> bool:
        """Say yes."""
        return True

    def write(self, text: str) -> int:
        """Send whole lines; keep the rest for the next write.

        What cannot be encoded is written as its escape.

        Raises:
            TypeError: it is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        sendable = text.encode("utf-8", "backslashreplace").decode()
        with self._writing:
            self._line.append(sendable)
            if "\n" in text or len(self._line) > PIECES_HELD:
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is held back, as far as the request may still print."""
        with self._writing:
            line, self._line = self._line, []
            text = "".join(line)
            if self._sender.busy_seq != self._seq:
                self.finish()
                self._start(self._sender.busy_seq)
            shown = text[: self._left]
            self._left -= len(shown)
            self._dropped += len(text) - len(shown)
            self._send(shown)

    def look(self) -> None:
        """Send a line that is not finished yet, if that need not wait; any thread."""
        if not self._line or not self._writing.acquire(blocking=False):
            return
        try:
            seq, text = self._sender.busy_seq, "".join(self._line)
            if seq != self._seq and not self._dropped:
                self._start(seq)
            fits = seq == self._seq and len(text) <= self._left
            if fits and self._sender.offer([Output(seq, self._stream, text)]):
                self._line.clear()
                self._left -= len(text)
        finally:
            self._writing.release()

    def finish(self) -> None:
        """Say how much of the request was not shown."""
        if self._line:
            self.flush()
        dropped, self._dropped = self._dropped, 0
        if dropped:
            self._send(not_shown(dropped))

    def _send(self, text: str) -> None:
        for start in range(0, len(text), PART):
            part = text[start : start + PART]
            self._sender.send([Output(self._seq, self._stream, part)])


class Screen:
    """Shows what is no text under a cell, behind what was printed before.

    Attributes:
        nbytes: of all that was shown.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._showing = threading.RLock()
        self.nbytes = 0
        self._start(0)

    def _start(self, seq: int) -> None:
        self._seq = seq
        self._left = DISPLAYS
        self._left_bytes = DISPLAYS_BYTES
        self._dropped = 0

    def show(self, act: Act) -> None:
        """Send it, as far as the request may still display.

        Raises:
            Exception: it does not pickle.
        """
        data = packed(act)
        with self._showing:
            if self._sender.busy_seq != self._seq:
                self.finish()
                self._start(self._sender.busy_seq)
            if not self._fits(act, len(data)):
                self._dropped += 1
                return
            for stream in (sys.stdout, sys.stderr):
                if isinstance(stream, Printer):
                    stream.flush()
            for part in parts_of(self._sender.busy_seq, data):
                self._sender.send([part])
            if isinstance(act, Shown):
                self.nbytes += sum(
                    len(value) for value in act.data.values() if isinstance(value, str | bytes)
                )

    def _fits(self, act: Act, nbytes: int) -> bool:
        if isinstance(act, Cleared):
            self._start(self._seq)
        elif not act.update:
            if not self._left or nbytes > self._left_bytes:
                return False
            self._left -= 1
            self._left_bytes -= nbytes
        return True

    def finish(self) -> None:
        """Say how much of the request was not shown."""
        with self._showing:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                are = "display is" if dropped == 1 else "displays are"
                text = f"accel_lab: {dropped:,} more {are} not shown\n"
                self._sender.send([Output(self._seq, "stderr", text)])


screens: list[Screen] = []
"""Where what is displayed shows; empty in a process that is no context."""


def not_shown(count: int) -> str:
    """Return what is said of text that was too much."""
    return f"\naccel_lab: {count:,} more characters were printed and are not shown\n"


def look() -> None:
    """Send what a request has printed that has not ended its line; any thread."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Printer):
            with contextlib.suppress(OSError):
                stream.look()


def finish() -> None:
    """Send what the request that ends now has printed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Printer):
            with contextlib.suppress(OSError):
                stream.finish()
    for screen in screens:
        with contextlib.suppress(OSError):
            screen.finish()
