"""What failed messages should have written, while nobody knows that they have failed.

A program goes on after it has sent a message. What it sends then of a buffer that was not written
would compute with what was there before, and where no exception is raised nobody would notice. So
the context refuses such buffers until whoever sends knows: the failure was raised to somebody, or
shown below a cell that is over by now.
"""

from collections.abc import Container, Iterable
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


class Withheld:
    """The buffers that the contexts of one device refuse, by id.

    `add` may be called by any thread, the others with the device's lock held.
    """

    def __init__(self) -> None:
        self._unwritten: dict[int, Unwritten] = {}
        # The numbers of the message that failed, and of the one that released.
        self._released: dict[int, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._unwritten)

    def add(self, ids: Iterable[int], unwritten: Unwritten) -> list[int]:
        """Note what was not written; returns those of which that was not known."""
        news = [
            id_
            for id_ in ids
            if id_ not in self._unwritten and unwritten.seq > self._released.get(id_, (0, 0))[1]
        ]
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

    def released(self, ids: Iterable[int], seq: int) -> None:
        """Take these out: message `seq` releases them."""
        if len(self._released) > MOST_RELEASED:
            self._released.clear()
        for id_ in ids:
            self._released[id_] = self._unwritten.pop(id_).seq, seq

    def before(self, seq: float) -> list[int]:
        """Return those that messages before this one should have written."""
        return [id_ for id_, one in self._unwritten.copy().items() if one.seq < seq]

    def released_by(self, seqs: Container[int], seq: float) -> list[int]:
        """Return those of `before` that are out by now, and that one of `seqs` releases."""
        released = self._released.items()
        return [id_ for id_, (failed, by) in released if by in seqs and failed < seq]

    def clear(self) -> None:
        """Forget them: no context has these buffers any more."""
        self._unwritten.clear()
