"""Which library enqueues on which stream of its context.

Who waits on the device for other devices, or runs the user's code, never shares a stream: work that
is behind it there would wait as well.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from accel_lab.compute.message.validation import require_count
from accel_lab.errors import InvalidArgument

USER_CODE = "run"
"""The library that runs functions and cells of the user's: its stream is CUDA's default one."""
APART = frozenset({"collective", "event", USER_CODE})
"""The libraries that share a stream with no other."""
MOST_STREAMS = 32
MOST_PRIORITY = 100


class Place(NamedTuple):
    """Where a library enqueues: the name of its stream, and the priority that is asked for it."""

    stream: str
    priority: int = 0


class PerActor(msgspec.Struct, frozen=True, tag="per actor"):
    """Each library has a stream of its own: what shares no memory runs side by side.

    Attributes:
        priorities: of some libraries' streams, as {"blas": 1}. Work of the higher one is begun
            first; the others have 0. A device that has fewer gives its highest.
    """

    priorities: dict[str, int] = {}

    def __post_init__(self) -> None:
        """Refuse what is no priority.

        Raises:
            InvalidArgument: it is none.
        """
        for library, priority in _items(self, "priorities"):
            _require_library(self, "priorities", library)
            _require_priority(f"PerActor: priorities[{library!r}]", priority)
        if USER_CODE in self.priorities:
            text = f"PerActor: {USER_CODE!r} has the default stream, which takes no priority"
            raise InvalidArgument(text)

    @property
    def shares(self) -> bool:
        """Whether two libraries may have the same stream."""
        return False

    def place(self, library: str, placed: Collection[str]) -> Place:  # noqa: ARG002 - as the others
        """Return where a library enqueues.

        Parameters:
            placed: the libraries that have a place.
        """
        return Place(library, self.priorities.get(library, 0))

    def named(self) -> Iterable[str]:
        """Return the libraries that are named."""
        return self.priorities


class Single(msgspec.Struct, frozen=True, tag="single"):
    """All libraries and copies share one stream: the device does one after the other.

    Attributes:
        priority: of that stream.
    """

    priority: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no priority.

        Raises:
            InvalidArgument: it is none.
        """
        _require_priority("Single: priority", self.priority)

    @property
    def shares(self) -> bool:
        """Whether two libraries may have the same stream."""
        return True

    def place(self, library: str, placed: Collection[str]) -> Place:  # noqa: ARG002 - as the others
        """Return where a library enqueues, as `PerActor.place`."""
        return Place(library) if library in APART else Place("single", self.priority)

    def named(self) -> Iterable[str]:
        """Return the libraries that are named."""
        return ()


class Pooled(msgspec.Struct, frozen=True, tag="pooled"):
    """Libraries and copies share some streams; those without a hint take them in turn.

    Attributes:
        n: how many there are.
        hints: which of them, from 0, some libraries take: {"upload": 0, "blas": 1}.
        priorities: of some of the streams, by number.
    """

    n: int
    hints: dict[str, int] = {}
    priorities: dict[int, int] = {}

    def __post_init__(self) -> None:
        """Refuse streams that there are not.

        Raises:
            InvalidArgument: a number is none of theirs, or a priority is none.
        """
        if not 1 <= require_count(self.n, "Pooled: n") <= MOST_STREAMS:
            text = f"Pooled: n is how many streams there are, 1 to {MOST_STREAMS}, not {self.n}"
            raise InvalidArgument(text)
        for library, at in _items(self, "hints"):
            _require_library(self, "hints", library)
            self._require_stream(f"hints[{library!r}]", at)
            if library in APART:
                text = f"Pooled: {library!r} has a stream of its own always, and takes no hint"
                raise InvalidArgument(text)
        for at, priority in _items(self, "priorities"):
            self._require_stream("a key of priorities", at)
            _require_priority(f"Pooled: priorities[{at}]", priority)

    @property
    def shares(self) -> bool:
        """Whether two libraries may have the same stream."""
        return True

    def place(self, library: str, placed: Collection[str]) -> Place:
        """Return where a library enqueues, as `PerActor.place`."""
        if library in APART:
            return Place(library)
        at = self.hints.get(library)
        if at is None:
            at = sum(one not in APART and one not in self.hints for one in placed) % self.n
        return Place(f"pool {at}", self.priorities.get(at, 0))

    def named(self) -> Iterable[str]:
        """Return the libraries that are named."""
        return self.hints

    def _require_stream(self, what: str, at: Any) -> None:
        if require_count(at, f"Pooled: {what}") >= self.n:
            text = f"Pooled: {what} is the number of a stream, 0 to {self.n - 1}, not {at}"
            raise InvalidArgument(text)


Allocator: TypeAlias = PerActor | Single | Pooled


def require_allocator(streams: Any, libraries: Collection[str]) -> Allocator:
    """Return an allocator that names only libraries that there are; None is `PerActor()`.

    Raises:
        InvalidArgument: it is something else.
    """
    if streams is None:
        return PerActor()
    if not isinstance(streams, Allocator):
        text = f"streams is PerActor(), Single() or Pooled(n) of accel_lab.streams, not {streams!r}"
        raise InvalidArgument(text)
    for library in streams.named():
        if library not in libraries:
            known = ", ".join(sorted(libraries))
            text = f"streams names the library {library!r}, and a device has {known}"
            raise InvalidArgument(text)
    return streams


def _items(allocator: Any, field: str) -> Iterable[tuple[Any, Any]]:
    """Return what a mapping has.

    Raises:
        InvalidArgument: it is none.
    """
    value, kind = getattr(allocator, field), type(allocator).__name__
    if not isinstance(value, dict):
        raise InvalidArgument(f"{kind}: {field} is a dict, not {value!r}")
    return value.items()


def _require_library(allocator: Any, field: str, library: Any) -> None:
    if not isinstance(library, str):
        kind = type(allocator).__name__
        raise InvalidArgument(f"{kind}: {field} goes by libraries, as 'blas', not {library!r}")


def _require_priority(what: str, priority: Any) -> None:
    if require_count(priority, what) > MOST_PRIORITY:
        raise InvalidArgument(f"{what} is 0 to {MOST_PRIORITY}, not {priority}")
