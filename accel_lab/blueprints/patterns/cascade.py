"""Cheap models first: a request goes on to the next one only where an answer is not sure."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from accel_lab.blueprints.patterns.base.batcher import (
    MAX_BATCH,
    MAX_WAIT_S,
    Batcher,
    require_wait,
)
from accel_lab.blueprints.patterns.base.errors import stage_failed
from accel_lab.blueprints.patterns.base.form import Form
from accel_lab.blueprints.patterns.base.pattern import (
    Limits,
    Overflow,
    PatternActor,
    Place,
    Service,
    require_share,
)
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Entry
from accel_lab.blueprints.patterns.base.stage import Stage, as_stage
from accel_lab.compute.events.patterns import Part
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count


class Judged(NamedTuple):
    """The answer of a cascade.

    Attributes:
        stage: the position of the stage whose answer it is, from 0.
        confidence: what that stage said.
        cost: of all stages that the request went through.
    """

    value: Any
    stage: int
    confidence: float
    cost: float


class Step(NamedTuple):
    """One stage of a cascade.

    Attributes:
        function: gets a list of values, and returns `(answer, confidence)` for each.
        threshold: the least confidence, from 0 to 1, with which its answer is the cascade's. The
            last stage's answer always is.
        cost: of one request, in a unit of yours.
    """

    function: Stage | Callable[..., Any]
    threshold: float = 0.9
    cost: float = 1.0


class InferenceCascade(Service):
    """Asks stages in turn, each in batches of its own, until one is sure enough.

    Answers are `Judged`. Statistics have how many requests each stage answered, the cost of all,
    and that cost as a share of what the last stage alone would have cost.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        steps: the cheapest first.
        max_batch, max_wait_s: of each stage, as in `DynamicBatchingServer`.
        stack: whether a function gets one array of all values.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "cascade"

    def __init__(
        self,
        place: Place,
        steps: Sequence[Step],
        *,
        max_batch: int = MAX_BATCH,
        max_wait_s: float = MAX_WAIT_S,
        stack: bool = False,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str = "cascade",
    ) -> None:
        if not steps:
            raise InvalidArgument("a cascade has one step at least")
        require_count(max_batch, "max_batch", 1)
        for position, one in enumerate(steps):
            require_share(one.threshold, f"threshold of step {position}")
            if not 0 <= one.cost < float("inf"):
                raise InvalidArgument(f"cost of step {position} is from 0 up, not {one.cost!r}")
        checked = [one._replace(function=as_stage(one.function)) for one in steps]
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        make = partial(
            CascadeActor,
            limits=limits,
            steps=checked,
            form=Form(stack=stack),
            max_batch=max_batch,
            max_wait_s=require_wait(max_wait_s),
        )
        super().__init__(place, name, make)


class CascadeActor(PatternActor):
    """Has a batcher for each stage; a request's note is its stage and what it has cost."""

    noun = "stage"

    def __init__(
        self,
        record: Record,
        limits: Limits,
        steps: Sequence[Step],
        form: Form,
        max_batch: int,
        max_wait_s: float,
    ) -> None:
        super().__init__(record, limits)
        self._steps, self._make = steps, (form, max_batch, max_wait_s)
        self._batchers: list[Batcher] = []

    def parts(self) -> tuple[Part, ...]:
        """Return the stages."""
        return tuple(map(self._part, range(len(self._steps)), list(self._batchers)))

    def _part(self, position: int, batcher: Batcher) -> Part:
        step, name = self._steps[position], batcher.calls.stage.name
        answered = self.record.done[str(position)]
        detail = f"cost {step.cost:g}, sure from {step.threshold:g}"
        return Part(name, "", detail, batcher.waiting, batcher.running, answered)

    def started(self) -> None:
        """Make the batchers."""
        super().started()
        for step in self._steps:
            calls = self.calls_of(as_stage(step.function))
            self._batchers.append(Batcher(self, calls, *self._make, self._judge))

    def enqueue(self, entry: Entry) -> None:
        """Have it wait at its stage, which is the first for a new one."""
        if entry.note is None:
            entry.note = 0, 0.0
        self._batchers[entry.note[0]].add(entry)

    def dequeue(self, entry: Entry) -> None:
        """Take it out of its stage's batch."""
        self._batchers[entry.note[0]].remove(entry)

    def left(self, entry: Entry) -> None:
        """End its call, if nobody else waits for that."""
        self._batchers[entry.note[0]].left(entry)

    def advance(self) -> None:
        """Begin what is due; the last stages first, for theirs are the oldest requests."""
        for batcher in reversed(self._batchers):
            batcher.advance()

    def _judge(self, entry: Entry, judged: Any) -> None:
        """Answer a request, or send it on."""
        position, cost = entry.note
        step, stage = self._steps[position], self._batchers[position].calls.stage.name
        try:
            value, confidence = judged
            confidence = float(confidence)
        except (TypeError, ValueError) as error:
            text = f"a stage of a cascade returns (answer, confidence) for each, not {judged!r}"
            wrong = InvalidArgument(text)
            wrong.__cause__ = error
            self.fail(entry, stage_failed(self.record.name, stage, entry.number, 1, wrong))
            return
        cost += step.cost
        self._count("cost", step.cost)
        if position + 1 == len(self._steps) or confidence >= step.threshold:
            self._count(f"answered by {stage}", 1)
            self.record.done[str(position)] += 1
            done = self.record.answered + 1
            whole = self._steps[-1].cost * done
            self.record.more["share of the last stage's cost"] = (
                self.record.more["cost"] / whole if whole else 0.0
            )
            self.answer(entry, Judged(value, position, confidence, cost))
        else:
            self.record.decide("sent on", (entry.number,), f"{confidence:.3g} of {stage}")
            entry.note = position + 1, cost
            self.again(entry)

    def _count(self, what: str, amount: float) -> None:
        self.record.more[what] = self.record.more.get(what, 0) + amount
