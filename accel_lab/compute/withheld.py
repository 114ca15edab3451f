"""What failed messages should have written, while nobody knows that they have failed.

A program goes on after it has sent a message. What it sends then of a buffer that was not written
would compute with what was there before, and where no exception is raised nobody would notice. So
the context refuses such buffers until whoever sends knows: the failure was raised to somebody, or
shown below a cell that is over by now.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from accel_lab.errors import AccelError

MOST_RELEASED = 1024


class Unwritten(NamedTuple):
    """Why a buffer was not written.

    Attributes:
        seq: the number of the message that failed.
        origin: the cell that has sent it.
    """

    seq: int
    error: AccelError
    origin: Any


class Released(NamedTuple):
    """A buffer that is refused no more.

    Attributes:
        failed: the number of the message that should have written it.
        by: the number of the message from which on it can be used.
    """

    id: int
    failed: int
    by: int


class Withheld:
    """The buffers that the contexts of one device refuse, by id.

    `add` and `ids` are for any thread, the others are called with the device's lock held.
    """

    def __init__(self) -> None:
        self._unwritten: dict[int, Unwritten] = {}
        self._released: tuple[Released, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._unwritten)

    def add(self, ids: Iterable[int], unwritten: Unwritten) -> list[int]:
        """Note what was not written; returns those of which that was not known."""
        over = {one.id for one in self._released if one.by > unwritten.seq}
        news = [id_ for id_ in ids if id_ not in self._unwritten and id_ not in over]
        self._unwritten.update(dict.fromkeys(news, unwritten))
        return news

    def why(self, id_: int) -> AccelError | None:
        """Return the failure for which a buffer is refused; None if nobody has to be told."""
        one = self._unwritten.get(id_)
        return None if one is None else one.error

    def known(self, here: object) -> list[int]:
        """Return those whose failure the cell `here` knows of."""
        unwritten = self._unwritten.copy().items()
        return [id_ for id_, one in unwritten if one.origin is not here or one.error.taken]

    def released(self, ids: Iterable[int], by: int, oldest: int) -> None:
        """Take these out: message `by` releases them.

        What was released before the `oldest` message that may be run again is forgotten.
        """
        known = [one for one in self._released if one.by > oldest]
        known += [Released(id_, self._unwritten.pop(id_).seq, by) for id_ in ids]
        self._released = tuple(known[-MOST_RELEASED:])

    def failed_between(self, since: float, seq: float) -> list[int]:
        """Return what message `seq` finds refused, of what failed from `since` on."""
        over = [one.id for one in self._released if since <= one.failed < seq < one.by]
        unwritten = self._unwritten.copy().items()
        return over + [id_ for id_, one in unwritten if since <= one.seq < seq]

    def released_between(self, since: float, seq: float) -> list[int]:
        """Return what was released behind message `since` and before `seq`."""
        return [one.id for one in self._released if since < one.by < seq]

    @property
    def ids(self) -> set[int]:
        """The buffers that a message finds refused somewhere in the order."""
        return {one.id for one in self._released} | self._unwritten.copy().keys()

    def clear(self) -> None:
        """Forget them: no context has these buffers any more."""
        self._unwritten.clear()
        self._released = ()
