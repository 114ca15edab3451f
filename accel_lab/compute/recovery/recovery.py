"""Rebuild a device's buffers after its context was lost.

When the next context is up a thread takes over: it runs the messages again on which buffers in use
depend, in their order, and then the requests that were in flight, one at a time. So a request that
breaks the context once more is known by name, and the others still get their results. Only then
does the device take what has been sent meanwhile.

Why it is as it is:

- It has a thread of its own, for it waits for answers, and the system thread waits for nothing: it
  has to notice that the new context is lost as well. A turn number tells an old recovery that it is
  over; what it still sends goes to a link that is closed.
- What was in flight is held until it is known why the context was lost, because a request that
  alone has broken it must not break the next. Whoever cancels finds it here meanwhile.
- Sending is stopped for one moment (`_plan`): what is unanswered, what is recorded and what is live
  have to be of the same moment, or a message would be run twice or not at all.
- A lost process may still write to the arena. Nothing is restored from there before it is reaped.
- Whatever goes wrong here leaves a device that works, without the buffers: no recovery is worth
  more than the context.

Rejected: copies of buffers made in advance (docs/decisions/0022), and running what was in flight
again all at once, after which nobody could say which of them it was.

Where the figures come from. The two waits of 10 s are bounds for what takes milliseconds, so that
nobody waits for ever; they are judged. 4096 messages are on their way at most, half of what a
device takes, so that requests of the user's are never refused for them. A process that ends by one
of `OWN_SIGNALS` has raised it itself; SIGKILL and SIGTERM come from others.
"""

import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.digest import Digest
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.dry_run import depends_on
from accel_lab.compute.lineage.history import Restore, Slice
from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.lineage.markers import Content, Failed, Rebuilt
from accel_lab.compute.lineage.recorded_message import Step, changes_of
from accel_lab.compute.lineage.recorder import MOMENT_S, Recorder
from accel_lab.compute.message.durability import Durability
from accel_lab.compute.recovery.all_lost import AllLost
from accel_lab.compute.recovery.culprit import culprit_of
from accel_lab.compute.recovery.resending import Resending, entry_of
from accel_lab.compute.requests.answers import Again, InFlight, Overtaken, Settle, Told
from accel_lab.display.buffer_number import short
from accel_lab.errors import AccelError, ContextLost, DependencyFailed, StaleRef

if TYPE_CHECKING:
    from accel_lab.compute.requests.requests import Requests
    from accel_lab.compute.wire.link import Link

EXPLAINED_WITHIN_S = 10.0
REAPED_WITHIN_S = 10.0
OUTSTANDING = 4096

_DIGEST = Digest.__struct_config__.tag


class Ending(Protocol):
    """The process of a context."""

    reaped: bool


class Recovered(msgspec.Struct, frozen=True):
    """What a recovery did.

    Attributes:
        rebuilt: the ids of the buffers that were made again.
        lost: why others were not.
        messages: how many messages were run again for that.
        requests: the requests in flight that were run again, by number.
        seconds: how long it took from the new context's start.
    """

    rebuilt: tuple[int, ...]
    lost: dict[int, str]
    messages: int
    requests: tuple[int, ...]
    seconds: float

    @property
    def any(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.rebuilt or self.lost or self.requests)

    def marker(self, generation: int) -> Rebuilt:
        """Return what the journal keeps of it."""
        buffers, requests = list(self.rebuilt), list(self.requests)
        return Rebuilt(generation, time.time(), buffers, self.messages, self.seconds, requests)


class Recovery:
    """The recovery of one device.

    `losing`, `took`, `begin` and `abandon` are called on the system thread and return at once.

    Parameters:
        done: told what was recovered, on the recovery's thread.
        broke: told what went wrong here, and with the filling of which context; it has that
            context lost. Any thread.
        fetch: copies what a message to several devices had left here from another one that has the
            same bytes; blocks, and returns None where there is none.
    """

    def __init__(
        self,
        requests: "Requests",
        recorder: Recorder,
        lineage: Lineage,
        arena: Arena,
        contents: Contents,
        done: Callable[[Recovered], None],
        broke: Callable[[Exception, "Link | None"], None],
        fetch: Callable[[int], bytes | None],
    ) -> None:
        self._requests = requests
        self._recorder = recorder
        self._lineage = lineage
        self._resending = Resending(requests, arena, contents, lineage.content_key)
        self._done = done
        self._broke = broke
        self._fetch = fetch
        self._contents = contents
        self._hopeless = ""  # why nothing is made again for the next context
        self._workers: set[int] = set()
        self._lock = threading.RLock()  # a finalizer may ask what is held
        self._known = threading.Condition(self._lock)
        self._held: dict[int, tuple[Reply[Any], Settle | None, Hashable | None]] = {}
        self._unexplained: list[InFlight] = []  # a context may be lost before it is known why
        self._explained: list[InFlight] = []  # those of them that are being looked through
        self._ending: list[Ending] = []  # the one before it was
        self._probed = 0
        self._is_sought = False  # a loss was counted, and the request that broke it is not known
        self._turn = 0
        self.lost: dict[int, str] = {}
        self.progress: tuple[int, int] | None = None
        """How many messages have been run again, and of how many; None when none are."""

    def durability(self, id_: int) -> Durability:
        """Return what a loss would do to a buffer; any thread. Blocks to read the record."""
        self._recorder.drain()
        return self._lineage.durability(id_)

    def durability_now(self, id_: int) -> Durability | None:
        """Return what a loss would do to a buffer; None where a moment is too short to tell."""
        until = time.monotonic() + MOMENT_S
        return self._lineage.durability_by(id_, until) if self._recorder.drain_quickly() else None

    # What happens to the device; system thread.

    def losing(self, process: Ending, in_flight: InFlight) -> None:
        """A context is lost and took these along; `took` or `forgo` follows. Any thread."""
        with self._lock:
            self._ending = [one for one in self._ending if not one.reaped] + [process]
            self._unexplained.append(in_flight)

    def took(
        self,
        in_flight: InFlight,
        error: ContextLost,
        special: Mapping[int, AccelError],
        *,
        again: bool,
        executing: int,
    ) -> None:
        """It is known why: answer what cannot be run again, and hold the rest.

        On a thread of its own, for the record is read for that, which may wait for a disk.

        Parameters:
            executing: the request that was being executed when the process ended; 0 where that is
                not known.
        """
        with self._lock:
            self._explained.append(in_flight)
        threading.Thread(
            target=self._take,
            args=(in_flight, error, special),
            kwargs={"again": again, "executing": executing},
            name=f"accel_lab loss of {self._requests.name}",
            daemon=True,
        ).start()

    def _take(
        self,
        in_flight: InFlight,
        error: ContextLost,
        special: Mapping[int, AccelError],
        *,
        again: bool,
        executing: int,
    ) -> None:
        me, token = threading.get_ident(), in_flight.token
        self._workers.add(me)
        steps: dict[int, Step] = {}
        try:
            self._recorder.drain()
            steps = {step.seq: step for step in self._lineage.steps_of(in_flight.pending.keys())}
            culprit = culprit_of(in_flight, steps, error, executing)  # no need to try it
        except Exception as strange:  # noqa: BLE001 - whatever it is, each request is answered
            self._broke(strange, None)
            culprit, again = 0, False
        failed: list[tuple[int, Reply[Any], AccelError]] = []
        with self._lock:
            for seq, reply in in_flight.pending.items():
                settle = in_flight.settles.get(seq)
                step = steps.get(seq)
                safe = again and step is not None and not step.opaque
                safe = safe and seq not in (self._probed, culprit)
                if safe and seq not in special and not isinstance(reply, Again):
                    self._held[seq] = reply, settle, token
                    continue
                if settle is not None:
                    settle(token)
                failed.append((seq, reply, special.get(seq, error)))
            self._is_sought = bool(self._held) and not (self._probed or culprit)
            self._probed = 0
            self._forgo(in_flight)
        for seq, reply, why in failed:
            try:
                if not isinstance(reply, Again) or reply.told is not None:
                    if seq in steps:
                        self._requests.answers.not_written(
                            changes_of(steps[seq]), seq, why, reply.origin
                        )
                    self._recorder.mark(Failed.of(seq, why))
            except Exception as strange:  # noqa: BLE001 - as above
                self._broke(strange, None)
            reply.reject(why)
        in_flight.clear()
        self._workers.discard(me)

    @property
    def is_at_work(self) -> bool:
        """Whether this thread is one that brings the device back: it cannot wait for it."""
        return threading.get_ident() in self._workers

    @property
    def repeats_a_loss(self) -> bool:
        """Whether a loss at this moment is the one before, of a request that is tried by itself."""
        with self._lock:
            return self._is_sought and self._probed != 0

    def forgo(self, in_flight: InFlight) -> None:
        """Leave what a context took along to somebody else, who answers it."""
        with self._lock:
            self._forgo(in_flight)

    def _forgo(self, in_flight: InFlight) -> None:
        self._unexplained = [one for one in self._unexplained if one is not in_flight]
        self._explained = [one for one in self._explained if one is not in_flight]
        self._known.notify_all()

    def begin(self, link: "Link", pid: int, up: Callable[[], None]) -> None:
        """A context is up: fill it, on a thread of its own, connect it, and then call `up`."""
        self._end_turn()
        threading.Thread(
            target=self._run,
            args=(self._turn, link, pid, up),
            name=f"accel_lab recovery of {self._requests.name}",
            daemon=True,
        ).start()

    def abandon(self, error: AccelError) -> None:
        """Answer what is held: no context comes any more, or none for long."""
        self._end_turn()
        self._forsake(error)

    def _end_turn(self) -> None:
        """Have a recovery that waits give up: its context is lost."""
        with self._lock:
            self._turn += 1
            self._known.notify_all()

    def _forsake(self, error: AccelError) -> None:
        with self._lock:
            held, self._held = self._held, {}
            for lost in self._explained:
                for seq, reply in lost.pending.items():
                    held[seq] = reply, lost.settles.get(seq), lost.token
                lost.clear()
        for seq, (reply, settle, token) in held.items():
            if settle is not None:
                settle(token)
            self._recorder.mark(Failed.of(seq, error))
            reply.reject(error)

    def cancel(self, seqs: list[int], error: Callable[[int], AccelError]) -> None:
        """Answer those of these requests that are held; any thread."""
        with self._lock:
            taken = {seq: self._held.pop(seq) for seq in seqs if seq in self._held}
            for lost in self._unexplained:
                for seq in lost.pending.keys() & seqs:
                    taken[seq] = lost.pending.pop(seq), lost.settles.pop(seq, None), lost.token
        for seq, (reply, settle, token) in taken.items():
            if settle is not None:
                settle(token)
            why = error(seq)
            self._recorder.mark(Failed.of(seq, why))
            reply.reject(why)

    # For what is suspended.

    def slice_of(self, ids: Collection[int]) -> tuple[Slice, set[int]]:
        """Return what has to be done to have these as they are now, and what is in use.

        Blocks to read the record.
        """
        if not ids:
            return Slice([], {}), set()
        self._recorder.drain()
        with self._lineage.still():
            return self._lineage.slice(ids), self._lineage.live

    def rebuild(self, link: "Link", found: Slice, kept: set[int], live: set[int]) -> dict[int, str]:
        """Do that in a context that is filled otherwise; return why which could not be had.

        Parameters:
            live: what is filled afterwards: not freed, for a context knows what has an id.

        Raises:
            Overtaken: the context is lost.
        """
        lost: dict[int, str] = {}
        self._resending.begin()
        self._run_slice(link, found, kept | live, lost)
        spoiled = sorted(kept & lost.keys())
        self._resending.free(link, spoiled)
        return {id_: lost[id_] for id_ in spoiled}

    @property
    def held(self) -> dict[int, Reply[Any]]:
        """The requests that wait to be run again, or for the reason of their loss."""
        with self._lock:
            held = {seq: reply for seq, (reply, _, _) in self._held.items()}
            for lost in self._unexplained:
                held |= lost.pending
            return held

    # The recovery's thread.

    def _run(self, turn: int, link: "Link", pid: int, up: Callable[[], None]) -> None:
        """Fill the context of `link`, unless it is lost meanwhile."""
        me = threading.get_ident()
        self._workers.add(me)
        try:
            self._wait_for_the_old(turn)
            if turn != self._turn:
                return
            self._bring(turn)
            if turn != self._turn:
                return
            done, passing = self._filled(link)
            if not self._requests.connection.connect(link, pid, free=passing):
                return
        except Overtaken:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the device must go on
            self._begin_anew(link, error)
            return
        finally:
            self._workers.discard(me)
        try:
            up()
            if done.any:
                self._recorder.mark(done.marker(self._requests.generation))
                self._done(done)
        except Exception as error:  # noqa: BLE001 - the device is up
            self._broke(error, None)

    def _bring(self, turn: int) -> None:
        """Have kept here what other devices have of results that are lost with the context.

        Before the plan: during that no message is sent, and those who have the bytes are asked by
        one.
        """
        if self._hopeless:
            return
        self._recorder.drain()
        held = self.held.keys()
        named = {id_ for step in self._lineage.steps_of(held) for id_ in step.operands}
        for seq in self._lineage.parts(named, held):
            if turn != self._turn:
                return
            try:
                data = self._fetch(seq)
                key = None if data is None else self._contents.put(data)
            except Exception as error:  # noqa: BLE001 - one buffer must not cost the others
                self._broke(error, None)
                continue
            if key:  # else it is lost, for the reason that it always had
                self._recorder.mark(Content(seq, key))

    def _filled(self, link: "Link") -> tuple[Recovered, Collection[int]]:
        """Have the context hold what it can; also return what it then holds in vain."""
        if self._hopeless:
            why, self._hopeless = self._hopeless, ""
            self.lost = AllLost(why)
            self.cancel(list(self.held), partial(_needs_lost, why, why))
            return Recovered((), {}, 0, (), 0.0), ()
        plan = self._plan(link)
        try:
            done = self._fill(link, plan)
        except Overtaken:
            raise
        except Exception as error:  # noqa: BLE001 - as in `_run`
            done = self._give_up(link, plan, error)
        finally:
            self.progress = None
        return done, plan.passing

    def _begin_anew(self, link: "Link", error: Exception) -> None:
        """Give a context up that cannot be filled, and have the next one begin with nothing."""
        self._hopeless = f"its recovery failed: {type(error).__name__}: {error}"
        self._broke(error, link)

    def _plan(self, link: "Link") -> "_Plan":
        """Find out what to make and what to run, at a moment when nothing is freed or sent."""
        queued, last = self._requests.connection.rebuilding(link)
        self._recorder.drain()
        unanswered = self.held.keys() | queued
        with self._lineage.still():  # what is sent meanwhile waits, and is not to be run twice
            unanswered |= self._lineage.later_than(last)
            pending = {step.seq: step for step in self._lineage.steps_of(unanswered)}
            named = {id_ for step in pending.values() for id_ in step.operands}
            made = {id_ for step in pending.values() for id_ in step.makes}
            live = self._lineage.live
            wanted = (live | named) - made
            found = self._lineage.slice(wanted, unanswered)
            self.lost = dict(found.lost)
            there = wanted - found.lost.keys()
            sharing = self._lineage.sharing(self._requests.answers.withheld.ids, there)
        return _Plan(found, pending, live - made, live | named, (named | made) - live, sharing)

    def _fill(self, link: "Link", plan: "_Plan") -> Recovered:
        began = time.monotonic()
        self._resending.begin()
        self.progress = 0, len(plan.found.steps) + len(self.held)
        messages = self._run_slice(link, plan.found, plan.kept, self.lost)
        self._prove(link, plan)
        spoiled = [id_ for id_ in plan.kept if id_ in self.lost]
        if spoiled:  # whatever is there is not what it was
            self._resending.free(link, spoiled)
        requests = self._run_held(link, plan)
        rebuilt = tuple(sorted(plan.live - self.lost.keys()))
        seconds = time.monotonic() - began
        lost = {id_: self.lost[id_] for id_ in plan.live if id_ in self.lost}
        return Recovered(rebuilt, lost, messages, tuple(requests), seconds)

    def _give_up(self, link: "Link", plan: "_Plan", error: Exception) -> Recovered:
        """Connect the context without the buffers: better than no context."""
        why = f"its recovery failed: {error}"
        self.lost = dict.fromkeys(plan.kept, why)
        self._resending.free(link, plan.kept)
        self.cancel(list(self.held), partial(_needs_lost, why, why))
        return Recovered((), dict.fromkeys(plan.live, why), 0, (), 0.0)

    def _wait_for_the_old(self, turn: int) -> None:
        """Wait until it is known what was lost, and until lost processes write no more."""
        with self._known:
            self._known.wait_for(
                lambda: turn != self._turn or not self._unexplained, EXPLAINED_WITHIN_S
            )
            shared = any(settle is not None for _, settle, _ in self._held.values())
            ending = self._ending
        until = time.monotonic() + REAPED_WITHIN_S
        while shared and not all(one.reaped for one in ending):
            if time.monotonic() > until or turn != self._turn:
                return
            time.sleep(0.001)

    def _run_slice(self, link: "Link", found: Slice, kept: set[int], lost: dict[int, str]) -> int:
        """Run the messages of a slice, and free what only they needed; returns how many.

        Parameters:
            lost: gets why something is not had then.
        """
        last: dict[int, int] = {}
        for position, step in enumerate(found.steps):
            if isinstance(step, Step):
                for id_ in (*step.needs, *step.makes):
                    if id_ not in kept:
                        last[id_] = position
        ends: dict[int, list[int]] = {}
        for id_, position in last.items():
            ends.setdefault(position, []).append(id_)
        sent: list[tuple[Step | Restore, Again]] = []
        for position, step in enumerate(found.steps):
            replies = self._send_if_possible(link, step, kept, lost)
            sent += [(step, reply) for reply in replies]
            if position in ends:
                self._resending.free(link, ends[position])
            if len(sent) >= OUTSTANDING:
                self._finish(sent.pop(0), lost)
        for each in sent:
            self._finish(each, lost)
        return sum(isinstance(step, Step) for step in found.steps)

    def _send_if_possible(
        self, link: "Link", step: Step | Restore, kept: set[int], lost: dict[int, str]
    ) -> list[Again]:
        """Send what a step takes, or give up what comes of it; returns the answers to wait for."""
        try:
            return self._resending.send(link, step)
        except AccelError as error:
            self._leave_out(link, step, kept, lost, error)
            return []

    def _leave_out(
        self,
        link: "Link",
        step: Step | Restore,
        kept: set[int],
        lost: dict[int, str],
        error: AccelError,
    ) -> None:
        """Give up what a step makes or changes, which may be half done, and views of that.

        It is freed, so that what needs it fails and is lost, too.
        """
        ids = _changed(step)
        written = step.writes if isinstance(step, Step) else ()
        for sharing in self._lineage.sharing(written, kept - ids).values():
            ids |= sharing
        for id_ in ids:
            lost.setdefault(id_, f"its recovery failed: {error}")
        self._resending.free(link, sorted(ids))
        self._resending.hurry()

    def _finish(self, sent: tuple[Step | Restore, Again], lost: dict[int, str]) -> None:
        """Wait for one; what it should have made or changed is lost when it has failed."""
        step, reply = sent
        self._requests.pump.wait(reply, None, shown=False)
        if isinstance(step, Step):
            self._advance()
        error = reply.error
        if error is None:
            return
        if isinstance(error, ContextLost):
            raise Overtaken
        for id_ in _changed(step):
            lost.setdefault(id_, f"running its message again failed: {error}")

    def _advance(self) -> None:
        if self.progress is not None:
            count, total = self.progress
            self.progress = min(count + 1, total), total

    def _prove(self, link: "Link", plan: "_Plan") -> None:
        """Give up what was made again and is not what it was, where that was recorded."""
        digests = self._lineage.digests(plan.kept - self.lost.keys(), plan.pending)
        for id_, before in digests.items():  # one by one: each is copied to the host
            seq = self._requests.outbox.number()
            entry = entry_of(seq, 0, Digest.timeout_s, [_DIGEST, id_, False])
            reply = self._resending.again(link, seq, entry)
            self._requests.pump.wait(reply, None, shown=False)
            if isinstance(reply.error, ContextLost):
                raise Overtaken
            if not reply.failed and (digest := reply.result(0.0)[0]) != before:
                why = f"its digest was {before} and is {digest}"
                self.lost[id_] = f"it was rebuilt, and differs from what it was: {why}"

    def _run_held(self, link: "Link", plan: "_Plan") -> list[int]:
        """Run what was in flight again, one request at a time; returns their numbers."""
        done: list[int] = []
        with self._lock:
            seqs = sorted(self._held)
        for since, seq in pairwise([0, *seqs]):
            step = plan.pending[seq]
            self._requests.connection.withhold(link, since, seq, plan.sharing)
            gone = next((id_ for id_ in step.operands if id_ in self.lost), None)
            if gone is not None:
                text = f"operand {short(gone)} could not be rebuilt: {self.lost[gone]}"
                error, waits = _needs_lost(text, self.lost[gone], seq), self._held.get(seq)
                error.root = gone
                where = None if waits is None else waits[0].origin
                self._requests.answers.not_written(changes_of(step), seq, error, where)
                self.cancel([seq], partial(_same, error))
                self.lost.update(dict.fromkeys(step.makes, depends_on(gone, self.lost[gone])))
                continue
            with self._lock:
                held = self._held.pop(seq, None)
                self._probed = seq
            if held is None:  # taken back meanwhile
                continue
            reply, settle, _ = held
            waited = Again(reply) if isinstance(reply, Told) else reply
            try:
                self._requests.connection.resend(link, seq, step.data, waited, settle)
            except BaseException:
                with self._lock:
                    self._held[seq] = held
                if (refusal := self._requests.connection.refusal) is not None:
                    self._forsake(refusal)  # nobody else has it who would answer it
                raise
            self._requests.pump.wait(waited, None, shown=False)
            self._advance()
            if waited is reply and reply.failed:  # that we have waited for it tells nobody
                self._requests.pump.unclaimed(reply)
            if isinstance(waited.error, ContextLost):
                raise Overtaken
            if waited.failed:
                why = f"its message failed: {waited.error}"
                self.lost.update(dict.fromkeys(step.makes, why))
            done.append(seq)
        self._probed = 0
        self._requests.connection.withhold(link, max(seqs, default=0), 0, plan.sharing)
        return done


class _Plan(NamedTuple):
    """What a recovery has to do.

    Attributes:
        found: the messages that make buffers.
        pending: the requests without an answer, by number.
        live: buffers in use that have to be made.
        kept: buffers that must be there in the end.
        passing: buffers that only the pending requests need.
        sharing: buffers that are made, by one that is not and was not written: they share its
            memory.
    """

    found: Slice
    pending: dict[int, Step]
    live: set[int]
    kept: set[int]
    passing: set[int]
    sharing: dict[int, set[int]]


def _changed(step: Step | Restore) -> set[int]:
    """Return the buffers that a step makes or changes."""
    if isinstance(step, Restore):
        return {step.checkpoint.id}
    return {*step.makes, *(step.writes if step.spoils else ())}


def _needs_lost(text: str, why: str, _: int) -> DependencyFailed:
    error = DependencyFailed(text)
    error.__cause__ = StaleRef(why)
    return error


def _same(error: AccelError, _: int) -> AccelError:
    return error
