"""Dry-run recorded messages to find which buffers can be rebuilt."""

import sys
from collections.abc import Iterable
from typing import NamedTuple

from accel_lab.compute.lineage.aliasing import Aliasing
from accel_lab.compute.lineage.markers import Checkpoint
from accel_lab.compute.lineage.recorded_message import Step

BEYOND = "the record does not reach back to the message that made it"
_DEPENDS = "it depends on buffer"


def depends_on(id_: int, why: str) -> str:
    """Return why that is lost which depends on a lost buffer.

    What a long chain depends on is what its first link depends on.
    """
    return why if why.startswith(_DEPENDS) else f"{_DEPENDS} {id_}: {why}"


class GivenUp(NamedTuple):
    """A buffer whose messages are forgotten.

    Attributes:
        since: up to this message it is known what it held.
        why: the reason, for people.
        changed: the last message that changed it.
    """

    since: int
    why: str
    changed: int

    def is_had_by(self, point: Checkpoint | None) -> bool:
        """Whether this holds what it held last."""
        return point is not None and point.seq >= self.changed


class DryRun:
    """What is had when messages are run: one that cannot be takes along whatever it writes.

    Parameters:
        never_made: buffers whose messages have failed, and how.

    Attributes:
        settled: effects, by `id`, that change nothing if they are run once more.
    """

    def __init__(
        self,
        aliasing: Aliasing,
        opaque: dict[int, str],
        given_up: dict[int, GivenUp],
        never_made: dict[int, str],
    ) -> None:
        self._roots_of = aliasing.of
        self._opaque = opaque
        self._given_up = given_up
        self._why = never_made
        self._spoilt: dict[int, tuple[int, str]] = {}  # memory: where it was spoilt last, and why
        self._made: dict[int, int] = {}  # buffers: where they were made or restored
        self._restored: dict[int, Checkpoint] = {}
        self._spoilt_anew: set[int] = set()  # memory, since something was restored last
        self.settled: set[int] = set()

    def restore(self, position: int, point: Checkpoint) -> None:
        """Make a buffer of what was kept."""
        self._made[point.id] = position
        self._restored[point.id] = point
        self._spoilt_anew.clear()
        self.settled.clear()

    def run(self, position: int, step: Step, never: str) -> None:
        """Run a message, unless it never can be, or an operand is not had."""
        reason, now = never, step.seq
        for id_ in step.needs:
            if not reason and (text := self._gone(id_, now)):
                reason = depends_on(id_, text)
        if reason:
            self._why.update(dict.fromkeys(step.makes, reason))
            for id_ in step.writes:
                text, roots = self._gone(id_, now) or reason, self._roots_of(id_)
                self._spoilt.update((root, (position, text)) for root in roots)
                if not self._spoilt_anew.issuperset(roots):
                    self._spoilt_anew.update(roots)
                    self.settled.clear()
        else:
            for id_ in step.makes:
                self._made[id_] = position
        if not (step.made or step.in_arena) and self._given_up.keys().isdisjoint(step.operands):
            self.settled.add(id(step.effects))

    def gone(self, wanted: Iterable[int]) -> dict[int, str]:
        """Return why which of these are not had in the end."""
        return {id_: text for id_ in wanted if (text := self._gone(id_, sys.maxsize))}

    def _gone(self, id_: int, now: int) -> str:
        """Return why a buffer is not had when message `now` would be run; "" if it is."""
        given_up, point = self._given_up.get(id_), self._restored.get(id_)
        if given_up is not None and given_up.since < now and not given_up.is_had_by(point):
            return given_up.why
        opaque = "" if point else self._opaque.get(id_)
        if opaque or id_ not in self._made:
            return opaque or self._why.get(id_, BEYOND)
        spoilt, roots = self._spoilt, self._roots_of(id_)
        marks = (spoilt[root] for root in roots if root in spoilt)
        return next((text for position, text in marks if position > self._made[id_]), "")
