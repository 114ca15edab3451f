"""Interrupting a user's Python code inside a context, as Ctrl-C does in a terminal.

A context ignores Ctrl-C, which every process of a terminal gets. What the notebook takes back it
asks the control thread to interrupt, and that signals the main thread, where functions run.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

SIGNAL = signal.SIGUSR1


class Interrupts:
    """Whether user code runs, and how it is interrupted; one a process."""

    def __init__(self) -> None:
        self._running = self._shielded = self._late = False

    def serve(self) -> None:
        """Take the signal from now on; the main thread."""
        signal.signal(SIGNAL, self._arrived)

    def __enter__(self) -> Self:
        self._running = True
        return self

    def __exit__(self, *_: object) -> None:
        self._running = False

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Keep an interrupt back while user code has called us; it comes when this ends."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
            if self._late:
                self._late = self._running = False
                raise KeyboardInterrupt

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the user code that runs, if any; any thread."""
        if self._running:
            signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._shielded:
            self._late = self._running
        elif self._running:  # it may have ended since
            self._running = False
            raise KeyboardInterrupt


INTERRUPTS = Interrupts()
