"""Running a journal again, on the same or another backend, and comparing what comes out.

`replay` does it at speed; a `Replay` is also an iterator, which runs one message at a time.
"""

import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from accel_lab.actor.reply import Reply
from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.device import Device
from accel_lab.compute.fault import Inject
from accel_lab.compute.step import Step, step_of
from accel_lab.compute.transfer import Allocate, Download
from accel_lab.compute.user_code import Ping, Run
from accel_lab.errors import AccelError, JournalError
from accel_lab.journal.comparison import Comparison, compare
from accel_lab.journal.digests import Digesting
from accel_lab.journal.entry import Entry
from accel_lab.journal.prelude import Place, prelude
from accel_lab.journal.progress import Bar
from accel_lab.journal.repeat import NotSent, Recorded, Repeater, Sent
from accel_lab.journal.report import ReplayReport
from accel_lab.journal.tolerance import tolerance
from accel_lab.libraries.program import Compile, InspectKernel

CHANGE_NOTHING = frozenset(kind.__name__ for kind in (Download, Ping, Inject, InspectKernel))
CODE = frozenset(kind.__name__ for kind in (Run, Compile))
COMPARISONS_IN_FLIGHT = 256

Where: TypeAlias = int | Entry | None
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


class Replay:
    """Runs messages of a journal again: all with `run`, or one for each step of an iteration.

    A recorded device is replayed on the device of its name, or else of its position among the
    recorded ones; when there are fewer devices, several share one.

    Attributes:
        report: what has been run so far and how it compares.

    Parameters:
        journal: what was recorded.
        system: where to replay it.
        from_: the first entry, by its place in the journal (negative from the end) or itself.
            What the part needs from before is run first, and not compared.
        to: the entry before which to stop.
        compare: compare results with the recorded digests, where there are any.
        allow_code: run functions and compile kernels of sessions that were not this process's.
            They are whatever the journal says, so do this with a journal that you trust.
        progress: show a bar when it takes longer than a second.

    Raises:
        JournalError: there is code and no leave to run it, or no such entry; nothing was run.
    """

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
        self._journal = journal
        entries = list(journal)
        begin, end = _place(entries, from_, 0), _place(entries, to, len(entries))
        self._part = entries[begin:end]
        self._before = prelude(entries[:begin], self._part)
        if not allow_code:
            _refuse_code([*self._before, *self._part], journal)
        self._compare = compare
        self._progress = progress
        self._repeater = Repeater(journal, stand_ins(entries, system.devices))
        self.report = ReplayReport(f"{system.name} ({system.backend})")
        self._sent: deque[_Pending] = deque()
        self._open: dict[int, weakref.ref[Reply[Any]]] = {}
        self._off: dict[tuple[Place, int], float] = {}
        self._mentions = _mentions(self._part)
        self._position = 0
        self._began = 0.0
        self._steps = self._one_by_one()

    def run(self) -> ReplayReport:
        """Run what is left and return the report; blocks until everything is answered."""
        self._prepare()
        with Bar("replay", len(self._part), shown=self._progress) as bar:
            while self._position < len(self._part):
                self._take()
                self._collect(COMPARISONS_IN_FLIGHT)
                bar.at(self._position)
        self._finish()
        return self.report

    def buffer(self, entry: Entry) -> AccelRef | None:
        """Return the live buffer that a message has made, until the record frees it."""
        return self._repeater.buffers(entry).refs.get(abs(entry.result))

    def __iter__(self) -> Iterator[Replayed]:
        """Run one message for each step, and wait for its answer."""
        return self

    def __next__(self) -> Replayed:
        return next(self._steps)

    def _one_by_one(self) -> Iterator[Replayed]:
        self._prepare()
        while self._position < len(self._part):
            entry = self._part[self._position]
            done = self._take()
            if isinstance(done, Replayed):
                yield done
            elif done is not None:
                error = outcome(done)
                found = self._collect(0)
                what: What = "run" if error is None else "failed"
                yield Replayed(entry, what, "", error, found[-1] if found else None)
        self._finish()

    # One entry.

    def _take(self) -> Replayed | Reply[Any] | None:
        """Do what the next entry says: return the reply to a message, or why it was not sent."""
        entry = self._part[self._position]
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
            last = self._mentions.get((entry.session, entry.device), {})
            later = [id_ for id_, number in last.items() if number > entry.number]
            self._repeater.forget(entry, later)
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
        if self._compare:
            self._sent.append(self._digest(entry, sent))
        return sent.reply

    def _leave_out_failed(self, entry: Entry) -> None:
        if step_of(entry.raw, b"").opaque and not _never_began(entry):
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

    # Comparing.

    def _digest(self, entry: Entry, sent: Sent) -> "_Pending":
        """Ask for the digest of a result, as it is before the next message."""
        was, step = entry.digest, sent.step
        if sent.made is None or entry.name == Allocate.__name__:
            return _Pending(entry, step, None, 0.0)
        if was is None:
            self.report.uncompared += 1
            return _Pending(entry, step, None, 0.0)
        asked = Digesting(self._repeater.device(entry), sent.made, values=bool(was.key))
        return _Pending(entry, step, asked, tolerance(sent.message, was.dtype))

    def _collect(self, leave: int) -> list[Comparison]:
        """Compare what has been answered, in order; blocks until at most `leave` are left."""
        found: list[Comparison] = []
        sent = self._sent
        while sent and (len(sent) > leave or sent[0].digest is None or sent[0].digest.done):
            comparison = self._compared(sent.popleft())
            if comparison is not None:
                found.append(comparison)
                self.report.add(comparison)
        return found

    def _compared(self, pending: "_Pending") -> Comparison | None:
        entry, step, was = pending.entry, pending.step, pending.entry.digest
        place = entry.session, entry.device
        root = self._repeater.buffers(entry).root
        offs = [self._off.get((place, root(id_))) for id_ in (*step.operands, *step.shares)]
        inherited = max((off for off in offs if off is not None), default=None)
        written = [id_ for id_ in (step.made, *step.writes) if id_]
        now = pending.digest.result() if pending.digest is not None else None
        if now is None or was is None:
            if inherited is not None:
                self._off.update({(place, root(id_)): inherited for id_ in written})
            return None
        kept = self._journal.content(was.key) if was.key and now[0] != was.digest else None
        comparison = compare(entry, was, now, kept, pending.may, inherited)
        for id_ in written:
            if comparison.verdict != "equal":
                within = comparison.verdict == "within tolerance"
                self._off[place, root(id_)] = comparison.off or 0.0 if within else 0.0
            elif root(id_) == id_:
                self._off.pop((place, id_), None)
        return comparison

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
        self._collect(0)
        for weak in list(self._open.values()):
            reply = weak()
            if reply is not None:
                outcome(reply)
        self.report.failed.sort(key=lambda failed: failed[0].number)
        self.report.seconds = time.monotonic() - self._began


class _Pending(NamedTuple):
    """A message whose result is not compared yet, and how far it may be off by itself."""

    entry: Entry
    step: Step
    digest: Digesting | None
    may: float


def stand_ins(entries: Iterable[Entry], devices: Sequence[Device]) -> dict[str, Device]:
    """Return the live device for each recorded name."""
    named = {device.name: device for device in devices}
    recorded = sorted({entry.device for entry in entries if entry.device})
    return {
        name: named.get(name, devices[position % len(devices)])
        for position, name in enumerate(recorded)
    }


def outcome(reply: Reply[Any]) -> AccelError | None:
    """Wait for a reply and return its failure."""
    try:
        reply.result()
    except AccelError:
        return reply.error
    return None


def _place(entries: Sequence[Entry], where: Where, default: int) -> int:
    """Return the position among the entries.

    Raises:
        JournalError: there is no such entry.
    """
    if where is None:
        return default
    if isinstance(where, int):
        return slice(where, None).indices(len(entries))[0]
    for position, entry in enumerate(entries):
        if entry.number == where.number:
            return position
    raise JournalError(f"entry {where.number} is not in the part of the journal that was given")


def _refuse_code(entries: Iterable[Entry], journal: Recorded) -> None:
    """Raise if there is code that another process recorded."""
    own = journal.own_sessions
    code = [
        entry
        for entry in entries
        if entry.name in CODE and not entry.failed and not entry.why and entry.session not in own
    ]
    if code:
        raise JournalError(
            f"the journal has code of another process, in {len(code)} messages from entry "
            f"{code[0].number} ({code[0].name}) on; if you trust it, replay with allow_code=True"
        )


def _mentions(entries: Iterable[Entry]) -> dict[Place, dict[int, int]]:
    """Return the last entry that names each buffer."""
    last: dict[Place, dict[int, int]] = {}
    for entry in entries:
        if entry.kind == "message":
            named = last.setdefault((entry.session, entry.device), {})
            named.update(dict.fromkeys(entry.operands, entry.number))
    return last


def _never_began(entry: Entry) -> bool:
    """Whether a failed message is known not to have run."""
    failure = entry.aftermath.failed.get(entry.seq)
    return failure is not None and failure.kind in {"Cancelled", "DependencyFailed"}
