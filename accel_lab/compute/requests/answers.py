"""The requests of one device that wait for their answers, and the delivery of those.

Answers arrive in whichever thread reads the wire. Each request is answered once: by its context,
or, when that is lost, by whoever took it out of the table.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from sys import getrefcount
from typing import Any

from accel_lab.actor.reply import Pump, Reply, Unmade
from accel_lab.compute.events.load import Load, load_of
from accel_lab.compute.groups.part import Part
from accel_lab.compute.lineage.markers import Arrays, Failed
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.machine.deferred_interrupts import UNINTERRUPTED
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.compute.message.unwritten import Refusal, Unwritten, UnwrittenBuffers
from accel_lab.compute.requests.withdrawal import Withdrawn
from accel_lab.compute.user_code.call import unpack as unpack_value
from accel_lab.compute.wire.codec import Answer, Began, Done, Failure, Ready, Report, Shaped
from accel_lab.compute.wire.failure import unpack
from accel_lab.compute.wire.link import Link
from accel_lab.errors import (
    AccelError,
    DependencyFailed,
    Interrupted,
    OutOfMemory,
    StaleRef,
    UserCodeError,
)

ROOTS_KEPT = 16
MOST_ROOTS = 1024
FEW = 128
"""So many results may be kept that nobody holds."""
_Array = tuple[int, tuple[int, ...], str, int]

Settle = Callable[[Hashable | None], None]
Adopt = Callable[[Reply[Any], int, tuple[int, ...], str], AccelRef]
Learn = Callable[[int, tuple[int, ...], str, int], None]
"""Takes a buffer's id, shape and dtype, and what it shares, as in `Shaped`."""


class InFlight:
    """Requests whose context was lost, taken out of the table and still unanswered.

    Parameters:
        token: names the lost process, for what it may still read or write; None if none did.
    """

    def __init__(
        self, pending: dict[int, Reply[Any]], settles: dict[int, Settle], token: Hashable | None
    ) -> None:
        self.pending = pending
        self.settles = settles
        self.token = token

    def __len__(self) -> int:
        return len(self.pending)

    def clear(self) -> None:
        """Forget them; whoever noticed the loss may keep this for as long as a timer runs."""
        self.settles.clear()
        self.pending.clear()

    def fail(self, error: AccelError, special: Mapping[int, AccelError] | None = None) -> None:
        """Answer all of them with `error`, or with what `special` has for their number."""
        for settle in self.settles.values():
            settle(self.token)
        for seq, reply in self.pending.items():
            reply.reject((special or {}).get(seq, error))
        self.clear()


class Told(Reply[None]):
    """Stands for the answers that nobody waits for: many messages share it.

    Success leaves it as it is; a failure becomes a reply of its own, for `lab.check()`.
    """

    __slots__ = ()

    def __init__(self, pump: Pump, where: object, library: str) -> None:
        super().__init__(pump, where)
        self.library = library

    def resolve(self, value: Any = None) -> None:
        """Do nothing."""

    def reject(self, error: AccelError) -> None:
        """Have the failure known as that of a request of its own."""
        failed: Reply[None] = Reply(self._pump, self.origin)
        failed.library = self.library
        failed.reject(error)


def _nothing(_: object) -> None:
    pass


class Answers:
    """The table of pending requests.

    Parameters:
        noticed: gets every report that answers nothing.
        recorder: is told what failed.
        complete: adds to an error what only the notebook knows: who has the memory that is missed,
            or why a buffer is not there any more.
    """

    def __init__(
        self,
        noticed: Callable[[Link, Report], None],
        recorder: Recorder | None = None,
        complete: Callable[[OutOfMemory | StaleRef], None] = _nothing,
    ) -> None:
        self.pending: dict[int, Reply[Any]] = {}
        self._noticed = noticed
        self._recorder = recorder
        self._complete = complete
        self._settles: dict[int, Settle] = {}
        self._roots: OrderedDict[int, tuple[AccelError, int]] = OrderedDict()
        self._roots_kept = ROOTS_KEPT
        self._parts: dict[int, tuple[bytearray, list[_Array]]] = {}
        self.withdrawn: dict[int, Withdrawn] = {}
        self.withheld = UnwrittenBuffers()
        self.adopt: Adopt
        """Makes the handle of a buffer that came inside an answer."""
        self.learn: Learn | None = None
        """Called with what only the context can tell of a result."""
        self.library: str | None = None
        """Of which all requests are from number `_of_library` on; None where that is not known."""
        self._of_library = 0
        self._looked_at = 0
        self._held: list[int] = []
        self._looks_in = 0
        self.rebuilding = 0
        """The thread that rebuilds an answer, and cannot read another meanwhile."""

    def expect(
        self, seq: int, reply: Reply[Any], settle: Settle | None, *, in_turn: bool = True
    ) -> None:
        """Enter a request; `settle` runs before its reply is done.

        Parameters:
            in_turn: whether it comes after all that were entered before.
        """
        if not in_turn:
            self.library = None
        elif reply.library is not self.library:
            self._of_library, self.library = seq, reply.library
        self.pending[seq] = reply
        if settle is not None:
            self._settles[seq] = settle

    def let_go(self, last: int) -> None:
        """Give up the buffers of results that nobody holds, before they are answered.

        A loop that runs ahead of its device would keep as many results as are in flight. Called now
        and then, by any thread, with no lock held.

        Parameters:
            last: the number of the request that was sent last.
        """
        if len(self.pending) <= FEW:
            return
        before, self._looked_at = self._looked_at, last
        fresh: Iterable[int] = range(before + 1, last + 1)
        if last - before > len(self.pending):
            fresh = [seq for seq in list(self.pending) if seq > before]
        self._held += _let_go(self.pending, fresh)
        self._looks_in -= last - before
        if self._looks_in <= 0:  # those that were held are looked at once a message at most
            self._held = _let_go(self.pending, self._held)
            self._looks_in = len(self._held)

    def let_go_all(self) -> None:
        """Give up the buffers of all results that nobody holds; any thread, with no lock held."""
        _let_go(self.pending, list(self.pending))

    def oldest(self) -> Reply[Any] | None:
        """Return the request that has waited longest, None when there is none; any thread."""
        while True:
            try:
                return next(iter(self.pending.values()), None)
            except RuntimeError:  # another thread took an answer at this moment
                continue

    def load(self, begun: int | None, queued: int) -> Load:
        """Count what is pending for each library; any thread.

        Parameters:
            begun: the newest request that the context has begun; None where it does not tell.
            queued: how many of the newest wait for a context.
        """
        while True:
            library, first = self.library, self._of_library
            try:
                found = load_of(self.pending, begun, queued, library, first)
            except RuntimeError:  # another thread took an answer at this moment
                continue
            if library is None or (library, first) == (self.library, self._of_library):
                return found

    def take(self, seq: int) -> Reply[Any] | None:
        """Take a request out, to answer it; None when it has been answered."""
        return self._settled(seq, self.pending.pop(seq, None))

    def _settled(self, seq: int, reply: Reply[Any] | None) -> Reply[Any] | None:
        if reply is None and self.withdrawn:
            reply = self.withdrawn.pop(seq, None)
        if reply is not None and self._settles:
            settle = self._settles.pop(seq, None)
            if settle is not None:
                settle(None)
        return reply

    def withdraw(self, seq: int) -> tuple[Reply[Any], Withdrawn] | None:
        """Take a request out that its context may be at; None when it has been answered.

        What is returned beside it gets the context's answer. Not at the same time as `take_all`.
        """
        reply = self.pending.get(seq)
        if reply is None:
            return None
        stand_in = self.withdrawn[seq] = Withdrawn(reply.origin, reply.library)
        if self.pending.pop(seq, None) is None:  # the answer came in between
            self.withdrawn.pop(seq, None)
            return None
        return reply, stand_in

    def cancelled(self) -> set[int]:
        """Return the requests that were cancelled while a context had them, and still has."""
        return {seq for seq, one in self.withdrawn.items() if one.part is None}

    @property
    def has_parts(self) -> bool:
        """Whether a context is still to answer a part of a group that is decided."""
        return any(one.part is not None for one in list(self.withdrawn.values()))

    def never_made(self, root: int, error: AccelError) -> None:
        """Remember what failed first, as in a `Refusal`, for what comes of it."""
        newest = next(reversed(self.pending), 0)
        self._roots[root] = error, newest
        if len(self._roots) > self._roots_kept:
            oldest, refused = next(iter(self.pending), newest + 1), self.withheld.roots
            # What comes of it was sent before it was known, or meets what is refused for it.
            over = [one for one, (_, last) in self._roots.items() if last < oldest]
            for one in over:
                if one not in refused and one != root:
                    del self._roots[one]
            self._roots_kept = 2 * len(self._roots) + ROOTS_KEPT
        if len(self._roots) > MOST_ROOTS:
            self._roots.popitem(last=False)

    def take_all(self, token: Hashable | None, queued: Iterable[int] = ()) -> InFlight:
        """Take everything out but what is `queued`: the process that `token` names is lost."""
        pending, self.pending = self.pending, {}
        settles, self._settles = self._settles, {}
        withdrawn, self.withdrawn = self.withdrawn, {}
        for seq in queued:
            if seq in pending:
                self.expect(seq, pending.pop(seq), settles.pop(seq, None))
            elif seq in withdrawn:
                self.withdrawn[seq] = withdrawn.pop(seq)
        for seq, stand_in in withdrawn.items():
            settle = settles.pop(seq, None)
            if settle is not None:
                settle(token)
            stand_in.resolve()
        self._parts.clear()
        return InFlight(pending, settles, token)

    def received(self, link: Link, reports: list[Report]) -> None:
        """Deliver one frame; the thread that reads the wire."""
        for report in reports:
            if type(report) is Done:
                self._done(report.seqs)
            elif type(report) is Failure:
                self._failed(report)
            elif type(report) is Shaped:
                shaped = self.take(report.seq)
                self._learn(shaped, report)
                if shaped is not None:
                    shaped.resolve()
            elif type(report) is Answer:
                self._answered(link, report)
            elif type(report) is Began or type(report) is Ready:
                self._part_of(report)
            else:
                self._noticed(link, report)

    def _part_of(self, report: Began | Ready) -> None:
        """Take in how far a part of a message to several devices has come."""
        reply = self.pending.get(report.seq) or self.withdrawn.get(report.seq)
        part = reply.part if isinstance(reply, Withdrawn) else reply
        if not isinstance(part, Part):
            return
        if type(report) is Ready:
            if report.dtype or report.several:
                self._learn(part.handle, report)
            part.resolve()
        else:
            part.began()

    def _learn(self, shaped: Reply[Any] | None, report: Shaped | Ready) -> None:
        if isinstance(shaped, Ref):
            shape = tuple(report.shape)
            shaped.learn(shape, report.dtype)
            if self.learn is not None and shaped.known:
                self.learn(shaped.id, shape, report.dtype, report.shares)
        elif isinstance(shaped, ResultsReply):
            self._learn_several(shaped, report)

    def _learn_several(self, shaped: ResultsReply, report: Shaped | Ready) -> None:
        for ref, told in zip(shaped.handles, report.several, strict=True):
            if ref is None or told is None:
                continue
            shape, dtype = told
            ref.learn(tuple(shape), dtype)
            if self.learn is not None and ref.known:
                self.learn(ref.id, tuple(shape), dtype, report.shares)

    def _done(self, seqs: list[int]) -> None:
        for seq in seqs:  # the hot path: `take`, without the call
            reply = self.pending.pop(seq, None)
            if reply is None or self._settles:
                reply = self._settled(seq, reply)
            if reply is not None:
                reply.resolve()

    def _answered(self, link: Link, answer: Answer) -> None:
        data, named = self._parts.pop(answer.seq, (bytearray(), []))
        data += answer.part
        named += answer.arrays
        if not answer.last:
            self._parts[answer.seq] = data, named
            return
        reply = self.take(answer.seq)
        if reply is None:
            return
        if named and self._recorder is not None:
            ids, shares = [one[0] for one in named], [one[3] for one in named]
            self._recorder.mark(Arrays(answer.seq, ids, shares))
        handles = {
            id_: self.adopt(reply, id_, tuple(shape), dtype) for id_, shape, dtype, _ in named
        }
        make = partial(_rebuilt, bytes(data), handles)
        if reply.library == "run" and link.is_supervised:
            # Of the user's classes, whose code may take long: that thread waits for nobody.
            reply.resolve(Unmade(make))
            return
        try:
            self.rebuilding = threading.get_ident()
            try:
                with UNINTERRUPTED.heeded():  # it may be the user's own code, and take long
                    value = make()
            finally:
                self.rebuilding = 0
            reply.resolve(value)
        except KeyboardInterrupt:
            reply.reject(Interrupted("its answer was being rebuilt when the wait was interrupted"))
            UNINTERRUPTED.late = True  # the rest of the frame goes first
        except UserCodeError as error:
            reply.reject(error.with_traceback(None))  # it is kept, and its frames are not to be

    def _failed(self, failure: Failure) -> None:
        reply = self.take(failure.seq)
        if reply is None:
            return
        if isinstance(reply, Withdrawn) and reply.part is not None:
            reply.resolve()
            return
        try:
            root, _ = self._roots.get(failure.root, (None, 0))
            error = unpack(failure, root)
            if isinstance(error, DependencyFailed):
                error.first = tuple(filter(None, map(self.withheld.why, error.unwritten)))
            if isinstance(error, OutOfMemory | StaleRef):
                error.root = failure.root
                self._complete(error)
        except Exception as strange:  # noqa: BLE001 - it is taken: nobody else answers it
            error = AccelError(f"{failure.kind}: {failure.text}")
            error.__cause__ = strange
        error.root = failure.root
        if self._recorder is not None:
            self._recorder.mark(Failed.of(failure.seq, error))
        if not isinstance(error, DependencyFailed) or self._is_first(error):
            self.never_made(failure.root, error)
        for id_ in failure.withheld:
            refusal = Refusal(id_, failure.root, failure.seq)
            self.withheld.add(refusal, Unwritten(error, reply.origin))
        reply.reject(error)

    def _is_first(self, error: DependencyFailed) -> bool:
        """Whether what this comes of is nothing of this device's."""
        return error.root not in self._roots and not error.unwritten

    def not_written(
        self, ids: Iterable[int], seq: int, error: AccelError, origin: Any
    ) -> list[Refusal]:
        """Note what the context has to refuse, for want of what this message did not write.

        Returns that, less what it refuses for the same first failure.
        """
        error.root = error.root or -seq
        self.never_made(error.root, error)
        refusals = [Refusal(id_, error.root, seq) for id_ in ids]
        news = [one for one in refusals if not self.withheld.stands(one)]
        for one in news:
            self.withheld.add(one, Unwritten(error, origin))
        return news


def _rebuilt(data: bytes, handles: Mapping[int, AccelRef]) -> Any:
    """Rebuild an answer with these buffers in it.

    Raises:
        UserCodeError: it cannot be.
    """
    try:
        return unpack_value(data, handles.__getitem__)
    except Exception as error:  # noqa: BLE001 - a class of the context may be unknown here
        wrapped = UserCodeError(f"the answer cannot be rebuilt in this process: {error!r}")
        # Below its frames are those of whoever happens to read the wire.
        raise wrapped from error.with_traceback(None)


def _let_go(pending: dict[int, Reply[Any]], seqs: Iterable[int]) -> list[int]:
    """Give up what nobody holds of these requests; return those that somebody does."""
    held = []
    for seq in seqs:
        reply = pending.get(seq)
        if type(reply) is ResultsReply:
            # Whoever is about to return it has not taken its handles yet.
            is_held = getrefcount(reply) > _OF_NOBODY or reply.let_go()
            held += [seq] if is_held else []
            continue
        if not isinstance(reply, Ref):
            continue
        if getrefcount(reply) <= _OF_NOBODY:
            reply.let_go()
        else:
            held.append(seq)
    return held


def _references(pending: dict[int, Any], seq: int) -> int:
    """Count as `_let_go` does; how many of them are its own depends on the interpreter."""
    reply = pending.get(seq)
    return getrefcount(reply)


_OF_NOBODY = _references({0: Reply()}, 0)


class Overtaken(Exception):
    """The context that was being filled is lost, too; the next one begins anew."""


class Again(Reply[Any]):
    """The answer to a message that is run again; a failure is passed on to `told`."""

    __slots__ = ("told",)

    def __init__(self, told: Told | None = None) -> None:
        super().__init__(None, None if told is None else told.origin)
        self.told = told

    def reject(self, error: AccelError) -> None:
        """Complete with a failure."""
        if self.told is not None:
            self.told.reject(error)
        super().reject(error)
