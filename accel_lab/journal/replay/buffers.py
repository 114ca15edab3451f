"""The buffers of one recorded device while its messages are replayed."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from accel_lab.compute.lineage.aliasing import Aliasing
from accel_lab.compute.lineage.recorded_message import Step
from accel_lab.compute.message.buffer import Ref

_PARTED = "memory that it may have shared was written, and it was made of its checkpoint by then"


EVERY = 2_000
"""After so many messages what was let go before the last such look is forgotten."""


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
        self.refs: dict[int, Ref[Any]] = {}
        self._aliasing = Aliasing()
        self._now = 0
        self._since: dict[int, int] = {}  # when a buffer was entered or mended
        self._gone: dict[int, str] = {}
        self._spoilt: dict[int, tuple[int, str]] = {}  # memory: when it was spoilt last, and why
        self._parted: dict[int, tuple[int, ...]] = {}  # memory of a mended one: what it was before
        self._touched: dict[int, int] = {}
        self._steps = 0
        self._let_go: set[int] = set()
        self._let_go_before: set[int] = set()

    @property
    def known(self) -> set[int]:
        """Those that are not forgotten, and what tells their memory."""
        ids = self._since.keys() | self._gone.keys()
        return ids | self._aliasing.of_all(ids)

    def roots(self, id_: int) -> tuple[int, ...]:
        """Return what tells a buffer's memory; those that may share it have one in common."""
        return self._aliasing.of(id_)

    def enter(self, id_: int, ref: Ref[Any], shares: Iterable[int] = ()) -> None:
        """A message has made a buffer; `shares` are those whose memory it may share."""
        self.refs[id_] = ref
        self.join(id_, shares)
        self._since[id_] = self._tick()

    def join(self, id_: int, shares: Iterable[int]) -> None:
        """A buffer may share memory with these."""
        same = self._aliasing.enter(id_, tuple(shares), self.refs)
        if same:
            self._touched[same[0]] = max(self._touched.get(root, 0) for root in same)
            if marks := [self._spoilt[root] for root in same if root in self._spoilt]:
                self._spoilt[same[0]] = max(marks)
            for own, before in self._parted.items():
                if not set(same).isdisjoint(before):
                    self._parted[own] = (*before, same[0])

    def _tick(self) -> int:
        self._now += 1
        return self._now

    def touched(self, step: Step) -> None:
        """Note when a buffer was last written."""
        self._steps += 1
        if self._steps % EVERY == 0:
            self._forget()
        roots = self._aliasing.of_all(step.writes)
        self._touched.update(dict.fromkeys(roots, step.seq))
        for own, before in self._parted.items() if roots else ():
            if own in roots:
                self._spoil(before, _PARTED)
            elif not roots.isdisjoint(before):
                self._spoil((own,), _PARTED)

    def lacks(self, id_: int, seq: int) -> bool:
        """Whether a buffer is not here as it was after request `seq`, the last to write it."""
        here = id_ in self.refs and not self._why(id_)
        return not here and all(self._touched.get(root, 0) <= seq for root in self.roots(id_))

    def mend(self, id_: int, ref: Ref[Any]) -> None:
        """A buffer is what it was once more, in memory that it shares with none."""
        self.refs[id_] = ref
        self._gone.pop(id_, None)
        self._since[id_] = self._tick()
        before = self.roots(id_)
        self._parted[self._aliasing.renew(id_)] = before

    def spoil(self, step: Step, why: str) -> None:
        """A message was not run: what it would have made or written is not what it was."""
        for id_ in step.makes:
            self.join(id_, step.shares)
            self._gone[id_] = why
        self.touched(step)
        for id_ in step.writes:
            self._spoil(self.roots(id_), self._why(id_) or why)

    def _spoil(self, roots: Iterable[int], why: str) -> None:
        self._spoilt.update(dict.fromkeys(roots, (self._tick(), why)))

    def _why(self, id_: int) -> str:
        """Return why a buffer is not what it was; empty if it is, or never was here."""
        if id_ in self._gone:
            return self._gone[id_]
        marks = (self._spoilt[root] for root in self.roots(id_) if root in self._spoilt)
        return next((why for when, why in marks if when > self._since.get(id_, 0)), "")

    def missing(self, step: Step) -> Missing | None:
        """Return the first operand that a message cannot have."""
        for id_ in step.operands:
            why = self._why(id_)
            if not why and id_ not in self.refs:
                why = "the journal does not reach back to the message that made it"
            if why:
                return Missing(id_, why)
        return None

    def free(self, ids: Iterable[int]) -> None:
        """Let these go; nothing names them any more."""
        for id_ in ids:
            self.refs.pop(id_, None)
            self._let_go.add(id_)

    def _forget(self) -> None:
        """Forget what was let go before the last time; what was made later may wait for a look."""
        old = self._let_go_before - self.refs.keys()
        self._let_go_before, self._let_go = self._let_go, set()
        for id_ in old:
            self._since.pop(id_, None)
            self._gone.pop(id_, None)
        self._aliasing.keep(self._since.keys() | self._gone.keys())
        known = self.known
        self._touched = {root: seq for root, seq in self._touched.items() if root in known}
        self._spoilt = {root: mark for root, mark in self._spoilt.items() if root in known}
        self._parted = {own: was for own, was in self._parted.items() if own in known}
