"""What failed messages should have written, while nobody knows of the failure.

A program goes on after it has sent a message. What it sends then of a buffer that was not written
would compute with what was there before, and where no exception is raised nobody would notice. So
the context refuses such buffers until whoever sends knows: the failure was raised to somebody, or
shown below a cell that is over by now.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from accel_lab.errors import AccelError

MOST_RELEASED = 1024


class Refusal(NamedTuple):
    """Why memory is refused: one of these for each first failure, however much came of that.

    Attributes:
        id: the buffer that was not written; it may be gone by now.
        root: the buffer whose message failed first, or below 0 the number of a message.
        failed: the number of the message that should have written it.
    """

    id: int
    root: int
    failed: int


class Unwritten(NamedTuple):
    """A failure for which a buffer is refused.

    Attributes:
        origin: the cell that has sent its message.
    """

    error: AccelError
    origin: Any


class Released(NamedTuple):
    """A refusal that is lifted.

    Attributes:
        by: the number of the message from which on that holds.
    """

    refusal: Refusal
    by: int


class UnwrittenBuffers:
    """The refusals of the contexts of one device.

    `add`, `stands` and `ids` are for any thread, the others are called with the device's lock held.
    """

    def __init__(self) -> None:
        self._unwritten: dict[Refusal, Unwritten] = {}
        self._alike: dict[tuple[int, int], list[Refusal]] = {}  # by their first two
        self._released: tuple[Released, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._unwritten)

    def add(self, refusal: Refusal, unwritten: Unwritten) -> None:
        """Note a refusal; it stands for those behind it that came of the same first failure."""
        alike = self._same(refusal)
        later = [one for one in alike if one.failed > refusal.failed]
        for one in later:
            self._unwritten.pop(one, None)
        self._unwritten[refusal] = unwritten
        alike = [one for one in alike if one.failed < refusal.failed]
        self._alike[refusal[:2]] = [*alike, refusal]

    def stands(self, refusal: Refusal) -> bool:
        """Whether an earlier one stands for this."""
        return any(one.failed < refusal.failed for one in self._same(refusal))

    def _same(self, refusal: Refusal) -> list[Refusal]:
        return [one for one in self._alike.get(refusal[:2], ()) if one in self._unwritten]

    @property
    def roots(self) -> set[int]:
        """What failed first of all that is refused."""
        return {one.root for one in self._unwritten.copy()}

    def why(self, refusal: Refusal) -> AccelError | None:
        """Return the failure for which a buffer is refused; None if nobody has to be told."""
        one = self._unwritten.get(refusal)
        return None if one is None else one.error

    def known(self, here: object) -> list[Refusal]:
        """Return those whose failure the cell `here` knows of."""
        unwritten = self._unwritten.copy().items()
        return [refusal for refusal, one in unwritten if one.origin is not here or one.error.taken]

    def released(self, refusals: Iterable[Refusal], by: int, oldest: int) -> None:
        """Take those of these out that are in: message `by` lifts them.

        What was lifted before the `oldest` message that may be run again is forgotten.
        """
        known = [one for one in self._released if one.by > oldest]
        over = [one for one in refusals if self._unwritten.pop(one, None) is not None]
        for one in over:
            if not self._same(one):
                self._alike.pop(one[:2], None)
        known += [Released(one, by) for one in over]
        self._released = tuple(known[-MOST_RELEASED:])

    def failed_between(self, since: float, seq: float) -> list[Refusal]:
        """Return what message `seq` finds refused, of what failed from `since` on."""
        over = [refusal for refusal, by in self._released if seq < by]
        return [one for one in [*over, *self._unwritten.copy()] if since <= one.failed < seq]

    def released_between(self, since: float, seq: float) -> list[Refusal]:
        """Return what was lifted behind message `since` and before `seq`."""
        return [refusal for refusal, by in self._released if since < by < seq]

    @property
    def ids(self) -> set[int]:
        """The buffers that a message finds refused somewhere in the order."""
        released = [refusal for refusal, _ in self._released]
        return {one.id for one in [*released, *self._unwritten.copy()]}

    def clear(self) -> None:
        """Forget them: no context has these buffers any more."""
        self._unwritten.clear()
        self._alike.clear()
        self._released = ()
