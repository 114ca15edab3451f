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
NOBODY = -1


class Interrupts:
    """Whether user code runs, and how it is interrupted; one a process."""

    def __init__(self) -> None:
        self._running = self._shielded = self._late = False
        self._request, self._unwanted = 0, NOBODY

    def serve(self) -> None:
        """Take the signal from now on; the main thread."""
        signal.signal(SIGNAL, self._arrived)

    def of(self, request: int) -> Self:
        """Say whose code runs while this is entered next; the main thread."""
        self._request = request
        return self

    def __enter__(self) -> Self:
        self._running = True
        if self._unwanted == self._request:  # it was to be interrupted before it came to this
            self._unwanted = NOBODY
            self._running = False
            raise KeyboardInterrupt
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

    def interrupt(self, request: int) -> None:
        """Raise KeyboardInterrupt in a request's code, now or when it begins; any thread."""
        self._unwanted = request
        self.insist()

    def insist(self) -> None:
        """Signal again what has not heard it; any thread.

        Code that is about to wait in the kernel, as `time.sleep` is once it lets other threads run,
        takes the signal before its wait, and Python hears of it after.
        """
        if self.is_due:
            signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)

    @property
    def is_due(self) -> bool:
        """Whether code is to be interrupted and has not heard it: it waits outside of Python."""
        return self._running and self._request == self._unwanted

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._request != self._unwanted or not self._running:
            return  # that has ended since
        self._unwanted = NOBODY
        if self._shielded:
            self._late = True
        else:
            self._running = False
            raise KeyboardInterrupt


INTERRUPTS = Interrupts()
