"""The time that two marks on a stream add to the work between them, measured on the card."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from cupy.cuda import runtime

from accel_lab.backends.cuda.completion.event_wait import fired
from accel_lab.compute.execution.tracer import Margins

TRIES = 8
MOST_S = 10e-6
"""Longer than this it takes only where other work has the whole card."""
_HELD_S = 0.05
_BYTES = 4

Pair = tuple[Any, Any]


class MarginMeter:
    """Puts marks around nothing and around a copy of four bytes; for one thread, never blocks.

    That happens on a stream of its own, which is held up until all of it is enqueued: so the card
    has the next at hand when it is through with the last, as on every stream that is busy.

    Parameters:
        mark: records an event with a time stamp on the stream at an address.
    """

    def __init__(self, mark: Callable[[int], Any]) -> None:
        self._mark = mark
        source: int = runtime.malloc(2 * _BYTES)  # first: a full card refuses it at every look
        self._stream: int = runtime.streamCreateWithFlags(runtime.streamNonBlocking)
        self._copy = partial(
            runtime.memcpyAsync,
            source + _BYTES,
            source,
            _BYTES,
            runtime.memcpyDeviceToDevice,
            self._stream,
        )
        self._begin()

    def read(self) -> Margins | None:
        """Return what it found, None until the card has got there.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        if not fired(runtime.eventQuery(self._copies[-1][1].ptr)):
            return None
        after, whole = _shortest(self._empty), _shortest(self._copies)
        if whole <= MOST_S:
            return Margins(max(0.0, whole - after), after)
        self._begin()
        return None

    def _begin(self) -> None:
        gate = threading.Event()
        runtime.launchHostFunc(self._stream, lambda _: gate.wait(_HELD_S), 0)
        try:
            self._empty = [self._around(_nothing) for _ in range(TRIES)]
            self._copies = [self._around(self._copy) for _ in range(TRIES)]
        finally:
            gate.set()

    def _around(self, work: Callable[[], object]) -> Pair:
        first = self._mark(self._stream)
        work()
        return first, self._mark(self._stream)


def _nothing() -> None:
    pass


def _shortest(pairs: list[Pair]) -> float:
    return min(float(runtime.eventElapsedTime(a.ptr, b.ptr)) for a, b in pairs) / 1000
