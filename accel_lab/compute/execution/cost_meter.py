"""What a piece of user code costs on the device; all on the dispatcher's thread.

The device's time is from the mark that its stream has reached when the code begins, which is after
whatever the operands wait for, to the mark behind all that the code has enqueued: on the context's
stream, on the one that it left current, and on every stream that is in step with the device's
default one (`Streams.join`). Pauses in between count. What is left on a stream that nothing waits
for, a non-blocking one of CuPy's or torch's, runs on and does not count. On `host` all work is done
when the code returns, so it is the time of the code, except for threads that it leaves behind.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from accel_lab.compute.execution.backend import Memory, Peak, Streams
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.execution.tracer import Clock

LOOK_S = (20e-6, 1e-3)
"""The shortest and the longest pause between two looks at a mark."""


class Span(NamedTuple):
    """How long something took, in seconds: by the device's clock, and by this process's."""

    device_s: float
    wall_s: float


class Cost(NamedTuple):
    """What a cell took, and the most memory that it had; None where that cannot be known."""

    span: Span
    peak: Peak | None


class CostMeter:
    """Measures on one stream of a context."""

    def __init__(self, streams: Streams, memory: Memory, stream: Stream) -> None:
        self._streams = streams
        self._memory = memory
        self._stream = stream
        self._clock: Clock | None = None

    def span(self, work: Callable[[], object]) -> Span:
        """Do `work` and wait for the device to be through with it.

        Raises:
            Exception: what `work` or the device raises.
        """
        clock = self._clock
        if clock is None:
            clock = self._clock = self._streams.clock()
        native = self._stream.native
        before = time.perf_counter()
        start = clock.mark(native)
        work()
        self._streams.join()
        end = clock.mark(native)
        # The later mark first: when it is reached, so is the other.
        done = _reached(clock, end)
        wall_s = time.perf_counter() - before
        return Span(max(0.0, done - _reached(clock, start)), wall_s)

    def cost(self, work: Callable[[], object]) -> Cost:
        """Do the same, and watch the memory meanwhile."""
        told = self._memory.watch_peak()
        try:
            span = self.span(work)
        finally:
            peak = told()
        return Cost(span, peak)


def _reached(clock: Clock, mark: object) -> float:
    """Wait until a mark is reached, and return when it was; an interrupt ends the wait."""
    began = time.perf_counter()
    while (at := clock.read(mark)) is None:
        # A hundredth of what it has taken, so that the wait takes neither a core nor long.
        time.sleep(min(max((time.perf_counter() - began) / 100, LOOK_S[0]), LOOK_S[1]))
    return at


def numbers() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, …, as `timeit.Timer.autorange` tries them."""
    scale = 1
    while True:
        yield from (scale, 2 * scale, 5 * scale)
        scale *= 10
