"""Replay a journal, on the same or another backend, and compare the results.

`replay` does it at speed; a `Replay` is also an iterator, which runs one message at a time.
"""

import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.digest import Digest
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.compute.lineage.history import CHANGED_NOTHING
from accel_lab.compute.lineage.recorded_message import step_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Download, Offer, Ping
from accel_lab.display.progress import REFRESH_S, Bar
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.replay.comparer import Comparer
from accel_lab.journal.replay.comparison import Comparison
from accel_lab.journal.replay.part import Reading, Where, outlasting, refuse_code
from accel_lab.journal.replay.prelude import prelude
from accel_lab.journal.replay.repeat import NotSent, Recorded, Repeater, Sent, outcome
from accel_lab.journal.replay.report import ReplayReport
from accel_lab.libraries.jit.messages import InspectKernel
from accel_lab.uncopied import Uncopied

CHANGE_NOTHING = frozenset(
    kind.__name__ for kind in (Download, Offer, Digest, Ping, Inject, InspectKernel)
)
COMPARISONS_IN_FLIGHT = 256

What: TypeAlias = Literal["run", "left out", "had failed", "not replayable", "failed"]


class Lab(Protocol):
    """A system, as far as replaying needs one."""

    name: str
    backend: str
    devices: list[Device]


class Replayed(NamedTuple):
    """What became of one message.

    Attributes:
        why: the reason, where it was not run.
        error: its failure, or its device's refusal.
        comparison: of its result, where a digest was recorded.
    """

    entry: Entry
    what: What
    why: str = ""
    error: AccelError | None = None
    comparison: Comparison | None = None


def replay(
    journal: Recorded,
    system: Lab,
    *,
    from_: Where = None,
    to: Where = None,
    compare: bool = True,
    allow_code: bool = False,
    progress: bool = True,
    on_step: Callable[[Replayed], object] | None = None,
) -> ReplayReport:
    """Run a journal again and report; as `Replay`.

    Parameters:
        on_step: called with what became of each message, which is waited for before the next.
    """
    options = {"from_": from_, "to": to, "compare": compare}
    again = Replay(journal, system, **options, allow_code=allow_code, progress=progress)  # type: ignore[arg-type]
    if on_step is not None:
        for replayed in again:
            on_step(replayed)
    return again.run()


class Replay(Uncopied):
    """Runs messages of a journal again: all with `run`, or one for each step of an iteration.

    A recorded device is replayed on the device of its name, or else of its position among the
    recorded ones; when there are fewer devices, several share one.

    Attributes:
        report: what has been run so far and how it compares.

    Parameters:
        journal: what was recorded.
        system: where to replay it.
        from_: the first entry, by its place in the journal (negative from the end) or itself.
            What the part needs from before is run first, and not compared; to find that, all
            that is before is held in memory.
        to: the entry before which to stop.
        compare: compare results with the recorded digests, where there are any.
        allow_code: run functions and compile kernels of sessions that were not this process's.
            They are whatever the journal says, so do this with a journal that you trust.
        progress: show a bar when it takes longer than a second.

    Raises:
        JournalError: there is code and no leave to run it, or no such entry; nothing was run.
        InvalidArgument: that is no system.
    """

    _instead = "make another, as Replay(journal, system); its report is plain data"

    def __init__(
        self,
        journal: Recorded,
        system: Lab,
        *,
        from_: Where = None,
        to: Where = None,
        compare: bool = True,
        allow_code: bool = False,
        progress: bool = True,
    ) -> None:
        if isinstance(system, type) or not hasattr(system, "devices"):
            text = f"a journal is replayed on a System, not on {system!r}"
            raise InvalidArgument(text)
        entries = Reading(journal)
        begin, end = entries.position(from_, 0), entries.position(to, len(entries))
        part = partial(islice, entries, begin, end)
        self._before = prelude(islice(entries, begin), part()) if begin else []
        if not allow_code:
            everything = chain(self._before, part())
            refuse_code((e for e in everything if e.replayable and not e.failed), journal)
        self._progress = progress
        self._repeater = Repeater(journal, stand_ins(entries.devices, system.devices))
        self.report = ReplayReport(f"{system.name} ({system.backend})", damage=entries.damage)
        self._comparer = Comparer(journal, self._repeater, self.report) if compare else None
        self._open: dict[int, weakref.ref[Reply[Any]]] = {}
        self._outlasting = outlasting(part())
        self._part = iter(part())
        self._count = max(end - begin, 0)
        self._position = 0
        self._began = 0.0
        self._steps = self._one_by_one()

    def run(self) -> ReplayReport:
        """Run what is left and return the report; blocks until everything is answered."""
        self._prepare()
        with Bar("replay", self._count, shown=self._progress) as bar:
            for entry in self._part:
                self._take(entry)
                self._collected(COMPARISONS_IN_FLIGHT)
                bar.at(self._answered)
            for weak in list(self._open.values()):
                reply = weak()
                while reply is not None and not reply.done:
                    with suppress(AccelError, TimeoutError):
                        reply.result(REFRESH_S)
                    bar.at(self._answered)
        self._finish()
        return self.report

    @property
    def _answered(self) -> int:
        """How many entries of the part are behind it."""
        return max(self._position - len(self._open), 0)

    def buffer(self, entry: Entry) -> AccelRef | None:
        """Return the live buffer that a message has made, until the record frees it.

        None also for what is no array.
        """
        ref = self._repeater.buffers(entry).refs.get(abs(entry.result))
        return ref if isinstance(ref, AccelRef) else None

    def __iter__(self) -> Iterator[Replayed]:
        """Run one message for each step, and wait for its answer."""
        return self

    def __next__(self) -> Replayed:
        return next(self._steps)

    def _one_by_one(self) -> Iterator[Replayed]:
        self._prepare()
        for entry in self._part:
            done = self._take(entry)
            if isinstance(done, Replayed):
                yield done
            elif done is not None:
                error = outcome(done)
                found = self._collected(0)
                what: What = "run" if error is None else "failed"
                yield Replayed(entry, what, "", error, found[-1] if found else None)
        self._finish()

    # One entry.

    def _take(self, entry: Entry) -> Replayed | Reply[Any] | None:
        """Do what an entry says: return the reply to a message, or why it was not sent."""
        self._position += 1
        if entry.kind == "message":
            return self._message(entry)
        if entry.kind == "free":
            self._repeater.free(entry)
        elif entry.kind == "arrays":
            self._repeater.arrays(entry)
        elif entry.kind == "checkpoint":
            self._repeater.restore(entry)
        elif entry.kind == "context ended":
            self._repeater.forget(entry, self._outlasting[entry.number])
        return None

    def _message(self, entry: Entry) -> Replayed | Reply[Any]:
        report = self.report
        if entry.failed:
            report.had_failed += 1
            self._leave_out_failed(entry)
            return Replayed(entry, "had failed", entry.outcome)
        if entry.name in CHANGE_NOTHING:
            report.skipped[entry.name] += 1
            return Replayed(entry, "left out", "it changes nothing")
        sent = self._repeater.send(entry, entry.timeout_s)
        if isinstance(sent, NotSent):
            if sent.error is not None:
                report.failed.append((entry, sent.error))
                return Replayed(entry, "failed", sent.why, sent.error)
            report.not_run.append((entry, sent.why))
            return Replayed(entry, "not replayable", sent.why)
        report.run += 1
        self._watch(entry, sent.reply)
        if self._comparer is not None:
            self._comparer.ask(entry, sent)
        return sent.reply

    def _leave_out_failed(self, entry: Entry) -> None:
        if step_of(entry.raw, b"").opaque and not _left_nothing(entry):
            self._repeater.leave_out(entry, "a function that failed may have changed it")

    def _watch(self, entry: Entry, reply: Reply[Any]) -> None:
        """Note a failure when it comes, without holding the buffer."""
        number = entry.number
        self._open[number] = weak = weakref.ref(reply)

        def done() -> None:
            found = weak()
            if self._open.pop(number, None) is not None and found is not None and found.error:
                self.report.failed.append((entry, found.error))

        reply.add_waiter(done)

    def _collected(self, leave: int) -> list[Comparison]:
        return [] if self._comparer is None else self._comparer.collect(leave)

    # Before and after.

    def _prepare(self) -> None:
        """Run what the part needs from before."""
        if self._began:
            return
        self._began = time.monotonic()
        for entry in self._before:
            if entry.kind == "checkpoint":
                self._repeater.restore(entry)
            elif entry.kind == "arrays":
                self._repeater.arrays(entry)
            elif entry.failed:
                self._leave_out_failed(entry)
            else:
                sent = self._repeater.send(entry, entry.timeout_s)
                if isinstance(sent, Sent):
                    self.report.run += 1
                    self.report.before += 1
                    self._watch(entry, sent.reply)

    def _finish(self) -> None:
        """Wait for everything that is on its way."""
        self._collected(0)
        for weak in list(self._open.values()):
            reply = weak()
            if reply is not None:
                outcome(reply)
        self.report.failed.sort(key=lambda failed: failed[0].number)
        self.report.seconds = time.monotonic() - self._began


def stand_ins(recorded: Collection[str], devices: Sequence[Device]) -> dict[str, Device]:
    """Return the live device for each recorded name."""
    named = {device.name: device for device in devices}
    return {
        name: named.get(name, devices[position % len(devices)])
        for position, name in enumerate(sorted(recorded))
    }


def _left_nothing(entry: Entry) -> bool:
    """Whether a failed message did not run, or what it wrote was lost with its context."""
    failure = entry.aftermath.failed.get(entry.seq)
    return entry.seq in entry.aftermath.lost or (
        failure is not None and failure.kind in CHANGED_NOTHING
    )
