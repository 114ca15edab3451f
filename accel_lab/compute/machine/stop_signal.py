"""The stop button, while a cell awaits.

A notebook then cancels the cell's task when its loop comes to it, and a loop that sleeps does not
hear of a signal by itself: here it is woken. What is cancelled because of a signal can be told from
what a program cancels.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class _Handler:
    """Notes an interrupt, wakes the loop, and does what was to be done."""

    def __init__(self, loop: asyncio.AbstractEventLoop, usual: Callable[..., Any]) -> None:
        self.seen = self.came = False
        self._loop = loop
        self._usual = usual

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen = self.came = True
        with suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(lambda: None)  # wakes it
        self._usual(number, frame)


def watch(loop: asyncio.AbstractEventLoop) -> bool:
    """Have the stop button wake a notebook's loop until the cell ends; the thread of the loop.

    The notebook sets a handler of its own for each cell that awaits, and takes it back at its end,
    with what is put before it here.

    Returns:
        bool: whether there is such a cell.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    usual: Any = signal.getsignal(signal.SIGINT)
    awaits = callable(usual) and str(getattr(usual, "__module__", "")).startswith("ipykernel.")
    if awaits:
        signal.signal(signal.SIGINT, _Handler(loop, usual))
    return awaits


def taken() -> bool:
    """Whether there was an interrupt in this cell that nobody has asked for yet; any thread."""
    handler = signal.getsignal(signal.SIGINT)
    if not isinstance(handler, _Handler):
        return False
    seen, handler.seen = handler.seen, False
    return seen and threading.current_thread() is threading.main_thread()


def came() -> bool:
    """Whether there was an interrupt in this cell, whoever has asked for it; any thread."""
    handler = signal.getsignal(signal.SIGINT)
    return isinstance(handler, _Handler) and handler.came


@contextmanager
def raised() -> Iterator[None]:
    """Have the next one raise KeyboardInterrupt, as where no loop runs; the main thread."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
