"""What one device does for the messages of which it has a part."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from accel_lab.actor.reply import Pump, Reply
from accel_lab.compute.groups.part import Joint, Part
from accel_lab.compute.groups.place import Place
from accel_lab.compute.lineage.markers import Failed
from accel_lab.compute.lineage.recorded_message import decode, encode
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.compute.message.unwritten import Refusal, Unwritten
from accel_lab.compute.requests.handles import Checked
from accel_lab.compute.requests.message_plan import MessagePlan
from accel_lab.compute.requests.requests import Requests
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.side_channel import GroupWord
from accel_lab.errors import AccelError, Cancelled

_PLACE = 6
"""Where an entry of the wire has its place."""


class Supervisor(Protocol):
    """Who looks after the device's context."""

    def tell(self, packet: GroupWord) -> None:
        """Send a control packet to the context, if there is one; returns at once."""


class Draft(NamedTuple):
    """A part that was checked, and is not sent.

    Attributes:
        generation: of its device when it was checked.
    """

    member: "Member"
    message: Operation[Any]
    plan: MessagePlan
    checked: Checked
    generation: int


class Member:
    """One device among those that get a part of a message; any thread may call."""

    def __init__(self, requests: Requests, supervisor: Supervisor) -> None:
        self.requests = requests
        self.name = requests.name
        self._supervisor = supervisor

    def check(self, message: Operation[Any]) -> Draft:
        """Check a part for this device as far as can be done before it is sent.

        Raises:
            InvalidArgument: its operands or options do not fit, or it is for one device.
        """
        requests = self.requests
        plan = requests.outbox.plan_of_part(type(message))
        generation = requests.generation
        return Draft(self, message, plan, requests.handles.check(message, plan), generation)

    # What follows is done with the device's lock held.

    def never_made(self, draft: Draft) -> Ref[Any] | None:
        """Return an operand that was never made.

        Raises:
            StaleRef: one is no more.
        """
        return self.requests.handles.first_failed(draft.plan.operands(draft.message))

    def part(self, draft: Draft, place: Place, joint: Joint, pump: Pump) -> tuple[Part, bytes]:
        """Make the handle of a part, and encode it; nothing is sent.

        Raises:
            InvalidArgument: it cannot travel.
        """
        requests, (spec, expected, known, _) = self.requests, draft.checked
        handles = copy.copy(requests.handles)
        handles.pump = pump
        handle, result = handles.of_answer(draft.message, draft.plan, spec, None, 0, known=known)
        handle.library = draft.plan.library
        part = Part(handle, joint, place.rank)
        part.library = draft.plan.library
        part.seq = seq = requests.queue.number()
        part.root = abs(result) or -seq
        data = encode_entry(seq, result, None, draft.message, expected, place)
        return part, data

    def send(self, part: Part, data: bytes) -> None:
        """Send a part, or queue it."""
        requests = self.requests
        answers = requests.answers
        if answers.withheld:
            requests.unrecorded.release_known(requests.connection.link)
        if isinstance(part.handle, ResultsReply) and answers.learn is not None:
            for ref in part.handle.refs:
                if isinstance(ref, AccelRef) and ref.known:
                    answers.learn(ref.id, ref.shape, ref.dtype, 0)
        requests.outbox.enter(part.seq, part, data)

    def refuse(self, draft: Draft, part: Part, error: AccelError) -> None:
        """Fail a part that is not sent; what it should have written is refused."""
        requests = self.requests
        part.handle.reject(error)
        link = requests.connection.link
        requests.unrecorded.withhold_writes(draft.message, part.handle, link)
        error.root = 0  # what failed first has another number on each device

    # And this without it.

    def sent(self, part: Part) -> None:
        """Do what follows a part that was sent."""
        outbox = self.requests.outbox
        outbox.flush()
        if outbox.digests is not None:
            outbox.digests(part.seq, part.handle)

    def complete(self, part: Part, group: int) -> None:
        """All parts are done: have the context answer this one, and let what depends on it go."""
        if self._withdraw(part) is not None:
            self._supervisor.tell(GroupWord(group))

    def abort(self, part: Part, draft: Draft, error: AccelError, word: GroupWord) -> None:
        """Fail a part wherever it is, and have its context end it."""
        requests = self.requests
        with requests.outbox.lock:
            waiting = requests.queue.waiting
            is_queued = part.seq in waiting
            if is_queued:
                waiting[part.seq] = _aborted(waiting[part.seq], word)
            let_go = self._withdraw(part)
            if let_go is not None:
                self._note(part, draft, error)
        over = part.take_back(error)
        if let_go is None:  # it was taken out with its context
            if over is not None:
                over()
            return
        if requests.recorder is not None:
            requests.recorder.mark(Failed.of(part.seq, error))
        if not is_queued:
            self._supervisor.tell(word)
        if over is not None:
            let_go(over)

    def _withdraw(self, part: Part) -> Callable[[Callable[[], object]], None] | None:
        """Take a part out that its context may be at; return what has things held until it is not.

        None when it was taken out before.
        """
        requests = self.requests
        with requests.outbox.lock:
            found = requests.answers.withdraw(part.seq)
        if found is None:
            return None
        _, stand_in = found
        stand_in.part = part
        return stand_in.hold

    def _note(self, part: Part, draft: Draft, error: AccelError) -> None:
        """Know why what comes of a part fails, as its context does."""
        answers = self.requests.answers
        answers.never_made(part.root, error)
        if isinstance(error, Cancelled):
            return  # whoever has taken it back knows
        for ref in draft.message.changes():
            refusal = Refusal(ref.id, part.root, part.seq)
            answers.withheld.add(refusal, Unwritten(error, part.origin))


def _aborted(data: bytes, word: GroupWord) -> bytes:
    """Return a part that waits for a context as one that has been aborted."""
    raw: list[Any] = decode(data)
    raw[_PLACE] = [*raw[_PLACE][:3], word.why, word.cancelled]
    return encode(raw)


def results_of_handle(handle: Reply[Any]) -> Any:
    """Return what whoever sends a message gets of its handle, as `ask` does."""
    return handle.handles if isinstance(handle, ResultsReply) else handle
