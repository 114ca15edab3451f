"""The buffers of one recorded device while its messages are run again."""

from collections.abc import Iterable
from typing import NamedTuple

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.step import Step


class Missing(NamedTuple):
    """A buffer that is not what it was, and why."""

    id: int
    why: str


class Buffers:
    """Live buffers by the numbers that they had when they were recorded.

    Attributes:
        refs: those there are; a buffer lives as long as it is here.
    """

    def __init__(self) -> None:
        self.refs: dict[int, AccelRef] = {}
        self._roots: dict[int, int] = {}
        self._gone: dict[int, str] = {}
        self._touched: dict[int, int] = {}

    def root(self, id_: int) -> int:
        """Return the buffer whose memory this one is, or may be, a part of."""
        while (other := self._roots.get(id_, id_)) != id_:
            id_ = other
        return id_

    def enter(self, id_: int, ref: AccelRef, shares: Iterable[int] = ()) -> None:
        """A message has made a buffer; `shares` are those whose memory it may share."""
        self.refs[id_] = ref
        self.join(id_, shares)

    def join(self, id_: int, shares: Iterable[int]) -> None:
        """A buffer may share memory with these."""
        root = self.root(id_)
        for other in shares:
            mine, root = root, self.root(other)
            if mine != root:
                self._roots[mine] = root
                if mine in self._gone:
                    self._gone.setdefault(root, self._gone[mine])

    def touched(self, step: Step) -> None:
        """Note when a buffer was last written."""
        for id_ in step.writes:
            self._touched[self.root(id_)] = step.seq

    def lacks(self, id_: int, seq: int) -> bool:
        """Whether a buffer is not here as it was after request `seq`, the last to write it."""
        root = self.root(id_)
        here = id_ in self.refs and root not in self._gone
        return not here and root == id_ and self._touched.get(root, 0) <= seq

    def mend(self, id_: int, ref: AccelRef) -> None:
        """A buffer is what it was once more."""
        self.refs[id_] = ref
        self._gone.pop(id_, None)

    def spoil(self, step: Step, why: str) -> None:
        """A message was not run: what it would have made or written is not what it was."""
        if step.made:
            self.join(step.made, step.shares)
        self.touched(step)
        for id_ in (step.made, *step.writes) if step.made else step.writes:
            self._gone.setdefault(self.root(id_), why)

    def missing(self, step: Step) -> Missing | None:
        """Return the first operand that a message cannot have."""
        for id_ in step.operands:
            why = self._gone.get(self.root(id_))
            if why is None and id_ not in self.refs:
                why = "the journal does not reach back to the message that made it"
            if why is not None:
                return Missing(id_, why)
        return None

    def free(self, ids: Iterable[int]) -> None:
        """Let these go."""
        for id_ in ids:
            self.refs.pop(id_, None)
