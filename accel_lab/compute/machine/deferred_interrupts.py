"""Ctrl-C and the stop button wait while the main thread writes a frame or delivers one.

KeyboardInterrupt comes between any two steps of Python's. There it would lose the rest of the
frame, and whoever waits for one of its answers would wait for ever.
"""

# Its `getsignal` takes 0.04 us, that of the public module 2.5.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class DeferredInterrupts:
    """Keeps KeyboardInterrupt back between `begin` and `end`; one a process.

    It is Python's own handler that it stands in for, from the first time on, and does the same at
    all other times. Other handlers, as asyncio's, are left alone, and so are other threads.

    Attributes:
        late: whether one is kept back; whoever can should come to an end.
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._depth = 0
        self.late = False

    def begin(self) -> None:
        """Keep it back from here on; any thread, only the main one's counts."""
        if threading.get_ident() != self._main:
            return
        if not self._depth:
            self.late = False
            if _signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                _signal.signal(signal.SIGINT, self._arrived)
        self._depth += 1

    def end(self) -> None:
        """Undo one `begin`.

        Raises:
            KeyboardInterrupt: it was kept back, and is not any more.
        """
        if threading.get_ident() != self._main:
            return
        self._depth = max(self._depth - 1, 0)
        if not self._depth and self.late:
            self.late = False
            raise KeyboardInterrupt

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Let it come meanwhile, what was kept back too."""
        if threading.get_ident() != self._main:
            yield
            return
        depth, self._depth = self._depth, 0
        try:
            if self.late:
                self.late = False
                raise KeyboardInterrupt
            yield
        finally:
            self._depth = depth

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if not self._depth:
            signal.default_int_handler(number, frame)
        self.late = True


UNINTERRUPTED = DeferredInterrupts()
