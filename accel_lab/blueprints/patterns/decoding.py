"""A server for decoders: sequences join and leave one running batch between its steps."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

from accel_lab.actor.actor import handles
from accel_lab.actor.letter import Promise
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.calls import Call
from accel_lab.blueprints.patterns.base.errors import stage_failed, wrong_answer
from accel_lab.blueprints.patterns.base.pattern import (
    Limits,
    Overflow,
    PatternActor,
    Place,
    Service,
)
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Entry, Infer, Stream
from accel_lab.blueprints.patterns.base.stage import Stage, as_stage
from accel_lab.compute.message.validation import require_timeout
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count

MAX_ACTIVE = 8
LIMIT = 256


class Last(NamedTuple):
    """What a step returns for a sequence that ends with this part."""

    part: Any


class _End:
    """What a step returns for a sequence that has ended, without another part."""

    def __repr__(self) -> str:
        return "END"


END = _End()


class Decode(Infer, frozen=True):
    """Decode a value, `limit` parts at most."""

    limit: int | None = None


class Sequence:
    """One request as a step sees it.

    Attributes:
        number: the request's.
        value: what was asked, as the tokens of a prompt.
        parts: what it has been answered so far; a step must not write to it.
        memory: for what a step keeps of it, as a cache of keys and values. It is empty again after
            a fault: the step then computes it anew, from the value and its parts.
        limit: how many parts it gets at most.
    """

    def __init__(self, number: int, value: Any, limit: int) -> None:
        self.number, self.value, self.limit = number, value, limit
        self.parts: list[Any] = []
        self.memory: dict[str, Any] = {}


class DecodingServer(Service):
    """Calls a step for all sequences that are active; new ones join before the next step.

    The step gets a list of `Sequence`, and returns the next part of each, as a token; `Last(part)`
    for one that ends with it, `END` for one that has ended. The answer is the list of all parts;
    `stream` gives each part after its step. One that is cancelled or late leaves after the step.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        step: a function or a `@stage`, on one device at most.
        max_active: how many sequences a step has at most.
        limit: how many parts a request gets that says nothing itself.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree; as the step's when not given.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "continuous batching"

    def __init__(
        self,
        place: Place,
        step: Stage | Callable[..., Any],
        *,
        max_active: int = MAX_ACTIVE,
        limit: int = LIMIT,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str | None = None,
    ) -> None:
        stage = as_stage(step)
        if len(stage.devices) > 1:
            found = ", ".join(one.name for one in stage.devices)
            text = f"a step has one device at most, for its sequences stay there, and not {found}"
            raise InvalidArgument(text)
        self._limit = require_limit(limit)
        require_count(max_active, "max_active", 1)
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        make = partial(
            DecodingActor, limits=limits, stage=stage, max_active=max_active, limit=limit
        )
        super().__init__(place, name or stage.name, make)

    def ask(
        self,
        value: Any,
        *,
        priority: int = 0,
        timeout_s: float | None = None,
        limit: int | None = None,
    ) -> Reply[Any]:
        """Send a value; the reply is the list of its parts.

        Parameters:
            limit: how many parts at most; the server's own when not given.
        """
        return self._send(self._decode(value, priority, timeout_s, None, limit))

    def stream(
        self,
        value: Any,
        *,
        priority: int = 0,
        timeout_s: float | None = None,
        limit: int | None = None,
    ) -> Stream:
        """Send a value, and return its parts as they come."""
        stream = Stream()
        stream.follow(self._send(self._decode(value, priority, timeout_s, stream, limit)))
        return stream

    def _decode(
        self,
        value: Any,
        priority: int,
        timeout_s: float | None,
        stream: Stream | None,
        limit: int | None,
    ) -> Decode:
        limit = self._limit if limit is None else require_limit(limit)
        return Decode(value, priority, require_timeout(timeout_s), stream, limit)


def require_limit(limit: int) -> int:
    """Return how many parts a request gets.

    Raises:
        InvalidArgument: it is no whole number from 1.
    """
    require_count(limit, "limit", 1)
    return limit


class DecodingActor(PatternActor):
    """Has one call at a time, for all that are active."""

    def __init__(
        self, record: Record, limits: Limits, stage: Stage, max_active: int, limit: int
    ) -> None:
        super().__init__(record, limits)
        self._stage, self._max_active, self._limit = stage, max_active, limit
        self._active: list[Entry] = []
        self._call: Call | None = None

    def started(self) -> None:
        """Get ready to call."""
        super().started()
        self._step = self.calls_of(self._stage)

    @handles(Decode)
    def decode(self, ask: Decode) -> Promise[Any]:
        """Take a request in."""
        return self.take_in(ask)

    def enqueue(self, entry: Entry) -> None:
        """Make its sequence."""
        limit = entry.ask.limit if isinstance(entry.ask, Decode) else None
        entry.note = Sequence(entry.number, entry.ask.value, limit or self._limit)

    def left(self, entry: Entry) -> None:
        """End the step, if nobody waits for it any more."""
        del entry
        if self._call is not None and all(one.is_over for one in self._active):
            self._call.cancel()

    def advance(self) -> None:
        """Let in who waits, and begin the next step."""
        if self._call is not None:
            return
        joined = []
        while self.queued and len(self._active) < self._max_active:
            first = self.first
            self.begin(first)
            self._active.append(first)
            joined.append(first.number)
        if joined:
            self.record.decide("joined", tuple(joined), f"{len(self._active)} are active")
        if self._active:
            self.record.calls += 1
            self.record.members += len(self._active)
            sequences = [one.note for one in self._active]
            self._call = self._step.begin(sequences, self._stepped, again=self._forget)

    def _forget(self) -> None:
        """Have the next run of a step begin with nothing kept: that may be lost."""
        for one in self._active:
            one.note.memory.clear()

    def _stepped(self, parts: Any, error: BaseException | None, runs: int) -> None:
        """Take in what a step returned."""
        active, self._active, self._call = self._active, [], None
        stage, name = self._stage.name, self.record.name
        sized = isinstance(parts, list | tuple) or hasattr(parts, "tolist")
        if error is not None:
            for one in active:
                self.fail(one, stage_failed(name, stage, one.number, runs, error))
        elif not sized or len(parts) != len(active):
            wrong = wrong_answer(name, stage, f"sequence of {len(active)} parts", parts)
            for one in active:
                self.fail(one, wrong)
        else:
            for one, part in zip(active, parts, strict=True):
                if not one.is_over:
                    self._take(one, part)
        self.turn()

    def _take(self, entry: Entry, part: Any) -> None:
        """Give a sequence its next part, and see whether it goes on."""
        sequence: Sequence = entry.note
        if isinstance(part, Exception):
            runs = len(sequence.parts) + 1
            name = self.record.name
            self.fail(entry, stage_failed(name, self._stage.name, entry.number, runs, part))
            return
        ends = part is END or isinstance(part, Last)
        if part is not END:
            found = part.part if isinstance(part, Last) else part
            sequence.parts.append(found)
            self.push(entry, found)
        if ends or len(sequence.parts) >= sequence.limit:
            self.answer(entry, sequence.parts)
        else:
            self._active.append(entry)
