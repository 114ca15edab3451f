"""What is held until streams have done with it: host memory that a copy reads, things to close.

An event is recorded for objects that wait for one, and not for each launch: a launch that holds
nothing pays nothing.
"""

import sys
from collections import deque
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.machine.stack_frames import lines_of


class Kept(Storage):
    """The memory of what is no array: it is closed behind the last use of it.

    Attributes:
        thing: what is kept; what it takes may change if it tells that itself.
        library: whose actor has made it.
        again: a message that names nothing and makes the same again; None if there is no such.

    Parameters:
        nbytes: what it takes; None where it tells that by `nbytes`, an attribute or a method.
        held: what waits for the streams, and closes it then.
        changed: gets this storage when it was written, where what it takes may change.
    """

    __slots__ = ("_changed", "_held", "again", "library", "thing")

    def __init__(
        self,
        home: Stream,
        thing: Any,
        nbytes: int | None,
        label: str,
        library: str,
        held: "HeldObjects",
        changed: Callable[["Kept"], None],
    ) -> None:
        self.thing = thing
        self.library = library
        self.again: Any = None
        self._held: HeldObjects | None = held
        self._changed = changed if nbytes is None else None
        super().__init__(home, size_of(thing) if nbytes is None else nbytes, label)

    @property
    def given_nbytes(self) -> int | None:
        """What it takes; None where it tells that itself."""
        return self.nbytes if self._changed is None else None

    @property
    def told(self) -> tuple[int, int]:
        """What the notebook learns of it: its bytes, and 1 where it has to be closed."""
        return self.nbytes, int(closing_of(self.thing) is not None)

    def write_on(self, stream: Stream) -> None:
        """Order `stream` as for any memory, and have the size looked at again."""
        super().write_on(stream)
        self.again = None
        if self._changed is not None:
            self._changed(self)

    def measured(self) -> int:
        """Return how many bytes it takes now; what it took before where it cannot tell."""
        try:
            return size_of(self.thing)
        except Exception as error:  # noqa: BLE001 - it is the library's, and all else is well
            _tell(f"{self.library}: {self.label} cannot tell its size", error)
            return self.nbytes

    def release(self) -> None:
        """Have the thing closed after every use of it, once."""
        super().release()
        held, self._held = self._held, None
        if held is not None and closing_of(self.thing) is not None:
            held.close_behind(self)


def size_of(thing: Any) -> int:
    """Return how many bytes a thing says that it takes on the device.

    Raises:
        TypeError: it does not say.
    """
    nbytes = getattr(thing, "nbytes", None)
    if callable(nbytes):
        nbytes = nbytes()
    if type(nbytes) is not int:
        kind = type(thing).__name__
        text = f"a {kind} does not say how large it is: give it `nbytes`, or keep(thing, nbytes)"
        raise TypeError(text)
    return nbytes


def closing_of(thing: Any) -> Callable[[], object] | None:
    """Return what closes a thing; None if nothing does."""
    close = getattr(thing, "close", None)
    return close if callable(close) else None


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
    """The objects of one context; for the dispatcher thread, but `add`.

    Attributes:
        is_busy: whether work beside the dispatcher, or what waits behind it, has a memory.
    """

    def __init__(self) -> None:
        self.is_busy: Callable[[Storage], bool] = lambda _: False
        self._new: deque[_New] = deque()
        self._marked: dict[Stream, deque[_Marked]] = {}

    def __bool__(self) -> bool:
        return bool(self._new or self._marked)

    def add(self, seq: int, stream: Stream, thing: Any) -> None:
        """Hold an object for a launch; any thread."""
        self._new.append(_New(seq, stream, thing))

    def close_behind(self, kept: Kept) -> None:
        """Close a thing when every use of it is done; its home stream is in order behind these."""
        self.add(0, kept.home, kept)

    def drop(self, begun: Container[int] = ()) -> None:
        """Drop what the streams have done with; never blocks.

        Parameters:
            begun: launches whose work is not all enqueued.
        """
        if self._new:
            self._mark(begun)
        for stream, marked in list(self._marked.items()):
            while marked and stream.native.reached(marked[0].event):
                _let_go(marked.popleft().things)
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
            things = [one.thing for one in self._new]
            for marked in self._marked.values():
                things += [thing for one in marked for thing in one.things]
            self._new.clear()
            self._marked.clear()
            _let_go(things)

    def _mark(self, begun: Container[int]) -> None:
        """Record one event on each stream, behind the launches that are enqueued."""
        things: dict[Stream, list[Any]] = {}
        for _ in range(len(self._new)):
            one = self._new.popleft()
            if one.seq in begun or (type(one.thing) is Kept and self.is_busy(one.thing)):
                self._new.append(one)
            else:
                things.setdefault(one.stream, []).append(one.thing)
        for stream, some in things.items():
            event = stream.native.record()
            self._marked.setdefault(stream, deque()).append(_Marked(event, some))


def _let_go(things: list[Any]) -> None:
    """Drop objects, and close those that have to be; what that raises is told, and no more."""
    for one in things:
        if type(one) is Kept and (close := closing_of(one.thing)) is not None:
            try:
                close()
            except Exception as error:  # noqa: BLE001 - it is the library's, and all else is well
                _tell(f"{one.library}: what {one.label} made was not closed", error)


def _tell(what: str, error: Exception) -> None:
    """Print below the cell that runs what went wrong with a thing."""
    text = f"accel_lab: {what}: {error!r}\n{lines_of(error)}"
    sys.stderr.write(f"{text.rstrip()}\n")
