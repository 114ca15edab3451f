"""How much a device has to do, by library: what its context has begun, and what waits for that."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from accel_lab.actor.reply import Reply

_library = attrgetter("library")


class Load(NamedTuple):
    """How many requests of each library have no answer.

    Attributes:
        running: those that the context has begun.
        waiting: those that it has not.
    """

    running: Mapping[str, int] = {}
    waiting: Mapping[str, int] = {}


def load_of(
    pending: Mapping[int, Reply[Any]],
    begun: int | None,
    queued: int,
    library: str | None,
    first: int,
) -> Load:
    """Count requests by their numbers, the oldest first.

    There may be thousands, a view asks ten times a second, and looking at each of them takes what
    memory takes. So nobody looks at those that are known to be of one library.

    Parameters:
        begun: the newest request that the context has begun; None where it does not tell.
        queued: how many of the newest wait for a context.
        library: of which all are from number `first` on; None where that is not known.

    Raises:
        RuntimeError: another thread took an answer meanwhile.
    """
    numbers = list(pending)
    known = len(numbers) if library is None else bisect_left(numbers, first)
    cut = _cut(numbers, begun, queued)
    # An answer may come between: of many, one counts elsewhere.
    looked_at = list(islice(pending.values(), known))
    running = Counter(map(_library, looked_at[:cut]))
    waiting = Counter(map(_library, looked_at[cut:]))
    if library is not None:
        running[library] += max(0, cut - known)
        waiting[library] += len(numbers) - max(cut, known)
    return Load(+running, +waiting)


def _cut(numbers: Sequence[int], begun: int | None, queued: int) -> int:
    """Return how many of these the context has begun."""
    sent = len(numbers) - queued
    return max(0, sent if begun is None else min(sent, bisect_right(numbers, begun)))
