"""Compare what a replay makes with the record of it, while it runs."""

import contextlib
from collections import deque
from typing import Any, NamedTuple

from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.digest import Digest
from accel_lab.compute.lineage.recorded_message import Step
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.builtin import Allocate, Upload
from accel_lab.errors import AccelError
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.replay.buffers import EVERY
from accel_lab.journal.replay.comparison import Comparison, compare
from accel_lab.journal.replay.prelude import Place
from accel_lab.journal.replay.repeat import Recorded, Repeater, Sent, outcome
from accel_lab.journal.replay.report import ReplayReport
from accel_lab.journal.replay.tolerance import tolerance


class Comparer:
    """Asks for digests and compares them in order; what differs is followed through the buffers.

    Parameters:
        journal: where recorded values are.
        report: gets the comparisons.
    """

    def __init__(self, journal: Recorded, repeater: Repeater, report: ReplayReport) -> None:
        self._journal = journal
        self._repeater = repeater
        self._report = report
        self._sent: deque[_Pending] = deque()
        self._off: dict[tuple[Place, int], float] = {}
        self._looks = 0

    def ask(self, entry: Entry, sent: Sent) -> None:
        """Ask for the digest of what a message makes, as it is before the next message."""
        for id_, made in sent.made.items():
            self._sent.append(self._asked(entry, sent, id_, made))
        if not sent.made:
            self._sent.append(_Pending(entry, sent.step, 0, None, 0.0))

    def _asked(self, entry: Entry, sent: Sent, id_: int, made: Ref[Any]) -> "_Pending":
        was, step = entry.digests.get(id_), sent.step
        if _undefined(sent) or not isinstance(made, AccelRef):  # what is no array has no digest
            return _Pending(entry, step, id_, None, 0.0)
        if was is None:
            self._report.uncompared += 1
            return _Pending(entry, step, id_, None, 0.0)
        digest: Reply[Any] | None = None
        with contextlib.suppress(AccelError):  # it is lost, which its own failure tells
            digest = self._repeater.device(entry).ask(Digest(made, bool(was.key)))
            digest.add_waiter(lambda: None)  # so that its failure is not told twice
        return _Pending(entry, step, id_, digest, tolerance(sent.message, was.dtype))

    def collect(self, leave: int) -> list[Comparison]:
        """Compare what has been answered, in order; blocks until at most `leave` are left."""
        found: list[Comparison] = []
        sent = self._sent
        while sent and (len(sent) > leave or sent[0].digest is None or sent[0].digest.done):
            comparison = self._compared(sent.popleft())
            if comparison is not None:
                found.append(comparison)
                self._report.add(comparison)
        return found

    def _compared(self, pending: "_Pending") -> Comparison | None:
        entry, step, was = pending.entry, pending.step, pending.entry.digests.get(pending.id)
        place = entry.session, entry.device
        self._looks += 1
        if self._looks % EVERY == 0:
            self._forget(entry, place)
        roots = self._repeater.buffers(entry).roots
        read = {one for id_ in step.operands for one in (id_, *roots(id_))}
        offs = [self._off.get((place, one)) for one in read]
        inherited = max((off for off in offs if off is not None), default=None)
        writes = (pending.id,) if pending.id else step.writes
        written = {root for id_ in writes for root in roots(id_)}
        if step.made:
            written.add(pending.id or step.made)
        now = None
        if pending.digest is not None and outcome(pending.digest) is None:
            now = pending.digest.result()
        if now is None or was is None:
            if inherited is not None:
                self._off.update({(place, one): inherited for one in written})
            return None
        digest, *_, data = now
        kept = self._journal.content(was.key) if was.key and digest != was.digest else None
        comparison = compare(entry, was, (digest, data), kept, pending.may, inherited)
        if comparison.verdict != "equal":
            within = comparison.verdict == "within tolerance"
            off = comparison.off or 0.0 if within else 0.0
            self._off.update({(place, one): off for one in written})
        else:
            for id_ in (pending.id or step.made, *writes):
                if roots(id_) in ((), (id_,)):
                    self._off.pop((place, id_), None)
        return comparison

    def _forget(self, entry: Entry, place: Place) -> None:
        """Forget of a device how far those were off that are let go."""
        known = self._repeater.buffers(entry).known
        self._off = {
            key: off for key, off in self._off.items() if key[0] != place or key[1] in known
        }


class _Pending(NamedTuple):
    """A result that is not compared yet, and how far it may be off by itself.

    `id` is its number where the message has several, else 0.
    """

    entry: Entry
    step: Step
    id: int
    digest: Reply[Any] | None
    may: float


def _undefined(sent: Sent) -> bool:
    """Whether the buffer holds something that no message has written yet."""
    message = sent.message
    partial = isinstance(message, Upload) and message.nbytes != message.out.nbytes
    return partial or isinstance(message, Allocate)
