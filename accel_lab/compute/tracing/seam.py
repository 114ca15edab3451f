"""The one place in the launch path that tells others where a message's work begins and ends.

A handler that is followed is another function, which calls the one that it was made of: so a
context that nobody follows has no look at anything more.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from accel_lab.compute.execution.launch import Launch

Handler = Callable[[Any, Launch], None]


class Follower(Protocol):
    """Whoever is told; on the thread that does the work, which is not always the same."""

    def begin(self, library: str, name: str, seq: int, cell: int) -> None:
        """Begin a range.

        Parameters:
            name: of the message, or of the kernel that it launches.
            seq: the message's number.
            cell: the notebook cell that has sent it; 0 where none has.
        """

    def end(self) -> None:
        """End the range that was begun last on this thread."""


class Seam:
    """Tells some followers, the first of them outermost."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        self._followers = followers

    def around(self, handler: Handler) -> Handler:
        """Return a handler that does the same and tells of it, also of what it leaves for later."""

        def followed(message: Any, launch: Launch) -> None:
            cell = launch.context.cell  # it may be another one when the rest is done
            with self._range(message, launch, cell):
                handler(message, launch)
            launch.prepared = None  # what is enqueued without a handler would be told of nowhere
            later = launch.deferred
            if later is not None:
                then = self._told(later.then, message, launch, cell)
                work = later.work
                if later.way != "poll":  # that is asked again and again
                    work = self._told(work, message, launch, cell)
                launch.deferred = later._replace(work=work, then=then)

        return followed

    def _told(
        self, do: Callable[..., Any], message: Any, launch: Launch, cell: int
    ) -> Callable[..., Any]:
        def told(*args: Any) -> Any:
            with self._range(message, launch, cell):
                return do(*args)

        return told

    @contextmanager
    def _range(self, message: Any, launch: Launch, cell: int) -> Iterator[None]:
        begun: list[Follower] = []
        try:
            for one in self._followers:
                one.begin(message.library, message.title, launch.seq, cell)
                begun.append(one)
            yield
        finally:
            for one in reversed(begun):
                one.end()
