"""The stop button, while a cell awaits.

A notebook then cancels the cell's task when its loop comes to it, and a loop that sleeps does not
hear of a signal by itself. Here a signal wakes it. What is cancelled because of one can be told
from what a program cancels.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from accel_lab.compute import origin


class Sigint:
    """The interrupts of this process that its main thread's loop has not acted upon; one."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._seen = False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have signals wake a notebook's loop from now on; the thread of the loop."""
        if loop is self._loop or not origin.in_notebook():
            return
        if threading.current_thread() is not threading.main_thread():
            return
        if self._pair is None:
            self._pair = socket.socketpair()
            for end in self._pair:
                end.settimeout(0)
        mine = self._pair[1].fileno()
        before = signal.set_wakeup_fd(mine, warn_on_full_buffer=False)
        if before not in (-1, mine):  # a loop that handles signals wakes by itself
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            return
        self._loop = loop
        loop.add_reader(self._pair[0], self._look)

    def take(self) -> bool:
        """Whether there was an interrupt since the last call; the loop's thread."""
        if threading.current_thread() is not threading.main_thread():
            return False
        self._look()
        seen, self._seen = self._seen, False
        return seen

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Have the next one raise KeyboardInterrupt, as where no loop runs; the main thread."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self.take()

    def _look(self) -> None:
        if self._pair is not None:
            with suppress(BlockingIOError):
                while signals := self._pair[0].recv(4096):
                    self._seen |= signal.SIGINT in signals


SIGINT = Sigint()
