"""What launches hold until their streams have done with it, as host memory that a copy reads.

An event is recorded for objects that wait for one, and not for each launch: a launch that holds
nothing pays nothing.
"""

from collections import deque
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from accel_lab.compute.execution.stream import Stream


class _New(NamedTuple):
    """An object, and the launch that holds it; its stream is not marked yet."""

    seq: int
    stream: Stream
    thing: Any


class _Marked(NamedTuple):
    """Objects that go when a stream gets to an event."""

    event: Any
    things: list[Any]


class HeldObjects:
    """The objects of one context; for the dispatcher thread, but `add`."""

    def __init__(self) -> None:
        self._new: deque[_New] = deque()
        self._marked: dict[Stream, deque[_Marked]] = {}

    def __bool__(self) -> bool:
        return bool(self._new or self._marked)

    def add(self, seq: int, stream: Stream, thing: Any) -> None:
        """Hold an object for a launch; any thread."""
        self._new.append(_New(seq, stream, thing))

    def drop(self, begun: Container[int] = ()) -> None:
        """Drop what the streams have done with; never blocks.

        Parameters:
            begun: launches whose work is not all enqueued.
        """
        if self._new:
            self._mark(begun)
        for stream, marked in list(self._marked.items()):
            while marked and stream.native.reached(marked[0].event):
                marked.popleft()
            if not marked:
                del self._marked[stream]

    def marks(self) -> Iterator[tuple[Stream, Any]]:
        """Yield each stream for which objects wait, and the first event that frees some."""
        for stream, marked in self._marked.items():
            yield stream, marked[0].event

    def close(self) -> None:
        """Wait for the streams and drop everything; no work is deferred any more.

        Raises what a stream does whose device is in error; everything is dropped then, too.
        """
        try:
            self._mark(())
            for stream, marked in self._marked.items():
                stream.native.synchronize(marked[-1].event)
        finally:
            self._new.clear()
            self._marked.clear()

    def _mark(self, begun: Container[int]) -> None:
        """Record one event on each stream, behind the launches that are enqueued."""
        things: dict[Stream, list[Any]] = {}
        for _ in range(len(self._new)):
            one = self._new.popleft()
            if one.seq in begun:
                self._new.append(one)
            else:
                things.setdefault(one.stream, []).append(one.thing)
        for stream, some in things.items():
            event = stream.native.record()
            self._marked.setdefault(stream, deque()).append(_Marked(event, some))
