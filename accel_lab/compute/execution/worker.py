"""A thread on which a library's calls may block, with a stream and vendor handles of its own."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from accel_lab.compute.execution.scratch import Scratch
from accel_lab.compute.execution.stream import NativeStream, Stream

H = TypeVar("H")


class _Kept(NamedTuple):
    """A handle, and the life of its library's actor in which it was made."""

    library: str
    life: int
    handle: Any


class Worker:
    """What `launch.blocking` gives to the work that it runs; for that work's thread alone.

    Attributes:
        stream: its own, current on its thread while the work runs.
        home: the same one as the dispatcher knows it: what was allocated here returns to its pool,
            and whatever uses that memory elsewhere comes before what this stream does with it next.
    """

    def __init__(self, stream: NativeStream, scratch: Scratch) -> None:
        self.stream = stream
        self.home = Stream("worker", stream)
        self._scratch = scratch
        self._turn = 0
        self._kept: dict[Any, _Kept] = {}
        self._library, self._life = "", 0

    def enter(self, library: str, life: int, after: Any) -> None:
        """Begin work of a library, in order after an event of the stream that asked for it.

        Handles that an earlier life of the library's actor made are closed.
        """
        self._library, self._life = library, life
        self._turn += 1
        self.stream.activate()
        self.stream.wait(after)
        for make, kept in list(self._kept.items()):
            if kept.library == library and kept.life != life:
                del self._kept[make]
                close = getattr(kept.handle, "close", None)
                if close is not None:
                    close()

    def workspace(self, nbytes: int) -> Any:
        """Return device memory to work in, as an array of bytes, until the work returns.

        It is this thread's own, and the next work here gets the same. What one takes does not
        overlap.

        Raises:
            MemoryError: it cannot be had.
        """
        return self._scratch.take(nbytes, self._turn, self._library)

    def handle(self, make: Callable[[NativeStream], H]) -> H:
        """Return this thread's own handle: what `make` returns for its stream, once.

        It is made anew after the library's actor was replaced; `close()`, if it has that, is called
        then. `make` is what it is found by, so it is a function of a module, or a class.
        """
        kept = self._kept.get(make)
        if kept is None:
            kept = _Kept(self._library, self._life, make(self.stream))
            self._kept[make] = kept
        return cast("H", kept.handle)
