"""A model that is replaced while it serves: loaded beside, compared, switched, rolled back."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from accel_lab.actor.actor import handles
from accel_lab.actor.letter import Promise
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.calls import Call, Calls
from accel_lab.blueprints.patterns.base.equality import equal
from accel_lab.blueprints.patterns.base.errors import SwapRefused, stage_failed
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
from accel_lab.errors import Cancelled, InvalidArgument
from accel_lab.pipeline.stage import require_count

Agree = Callable[[Any, Any], Any]


class Served(NamedTuple):
    """The answer of a model that may be swapped, and the generation whose answer it is, from 1."""

    value: Any
    generation: int


class Swapped(NamedTuple):
    """What came of a swap.

    Attributes:
        generation: which one serves from now on.
        compared: how many answers were compared before.
        differing: how many of them differed.
    """

    generation: int
    compared: int
    differing: int


class Swap(Message[Swapped], frozen=True):
    """Have another model serve, once it is warm and has answered alike; see `swap`."""

    stage: Stage
    warm_up: tuple[Any, ...]
    shadow: float
    compare: int
    agree: Agree
    most_differing: float


class RollBack(Message[int], frozen=True):
    """Have the generation before serve again; the answer is its number."""


class ModelHotSwapServer(Service):
    """Serves one model, and switches to another one between two requests.

    Answers are `Served`, with the number of the generation. A request is answered by exactly one,
    that which served when it began, also where it is run again after a fault. The generation before
    stays loaded, so that `roll_back` costs nothing, until the next swap is done.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        model: a function, a `@stage`, or another pattern; it gets one value.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree; as the model's when not given.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "hot swap"

    def __init__(
        self,
        place: Place,
        model: Stage | Callable[..., Any] | Service,
        *,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str | None = None,
    ) -> None:
        stage = as_stage(model)
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        make = partial(SwapActor, limits=limits, serving=Serving(stage))
        super().__init__(place, name or stage.name, make)

    def swap(
        self,
        model: Stage | Callable[..., Any] | Service,
        *,
        warm_up: Sequence[Any] = (),
        shadow: float = 0.0,
        compare: int = 0,
        agree: Agree = equal,
        most_differing: float = 0.0,
    ) -> Reply[Swapped]:
        """Load another model beside the one that serves, and then switch; returns the reply.

        Cancelling the reply ends the swap; the old model serves on, as where it is refused.

        Parameters:
            warm_up: values that each device of the new model answers before it serves. When not
                given it is the newest request's value, if there was one.
            shadow: which share of requests, from 0 to 1, the new one answers, too, for comparison.
            compare: how many answers are compared before the switch.
            agree: `agree(old, new)` says whether two answers are alike; equal ones are when not
                given, and arrays within 1e-5.
            most_differing: which share of them may differ.

        Raises:
            InvalidArgument: an option does not fit.
            SwapRefused: of the reply: the new one failed, or differs too often.
        """
        require_share(shadow, "shadow")
        require_share(most_differing, "most_differing")
        require_count(compare, "compare", 0)
        if (shadow > 0) != (compare > 0):
            raise InvalidArgument("shadow= and compare= go together: a share, and how many of it")
        stage = as_stage(model)
        message = Swap(stage, tuple(warm_up), shadow, compare, agree, most_differing)
        reply: Reply[Swapped] = self._send(message)
        return reply

    def roll_back(self) -> Reply[int]:
        """Have the generation before serve again, at once; the reply is its number.

        Raises:
            InvalidArgument: of the reply: there is none before, or a swap is under way.
        """
        reply: Reply[int] = self._send(RollBack())
        return reply


class Serving:
    """Which stages there are; it outlives a restart of the actor."""

    def __init__(self, stage: Stage) -> None:
        self.number = self.made = 1
        self.stages: dict[int, Stage] = {1: stage}
        self.before: int | None = None


class Trial:
    """A swap that is under way.

    Attributes:
        warming: how many calls of the warm-up are not over.
        owed: what of the share is not sent yet; a shadow goes when it is one.
    """

    def __init__(self, swap: Swap, number: int, promise: Promise[Swapped]) -> None:
        self.swap, self.number, self.promise = swap, number, promise
        self.warming = self.sent = self.compared = self.differing = 0
        self.owed = 0.0
        self.answers: dict[int, dict[str, Any]] = {}
        self.calls: list[Call] = []


class SwapActor(PatternActor):
    """Has the calls of each generation; a request's note is its call and its generation."""

    noun = "generation"

    def __init__(self, record: Record, limits: Limits, serving: Serving) -> None:
        super().__init__(record, limits)
        self._serving = serving
        self._generations: dict[int, Calls] = {}
        self._trial: Trial | None = None
        self._newest: tuple[Any, ...] = ()

    def started(self) -> None:
        """Get ready to call the stages that there are."""
        super().started()
        for number, stage in self._serving.stages.items():
            self._generations[number] = self.calls_of(stage)
        self.record.more["generation"] = self._serving.number

    def stopped(self) -> None:
        """Give a swap up: whoever asked for it is told."""
        self._trial = None
        kept = self._serving.number, self._serving.before
        self._serving.stages = {n: one for n, one in self._serving.stages.items() if n in kept}
        super().stopped()

    def parts(self) -> tuple[Part, ...]:
        """Return the generations that there are."""
        return tuple(self._part(*one) for one in list(self._generations.items()))

    def _part(self, number: int, calls: Calls) -> Part:
        serving, trial = self._serving, self._trial
        words = {serving.before: "kept", serving.number: "serves"}
        word = "on trial" if trial is not None and trial.number == number else "drains"
        answered = self.record.more.get(f"answered by {number}", 0)
        more = 0, calls.running, answered, self.record.missed[str(number)]
        return Part(str(number), words.get(number, word), calls.stage.name, *more)

    # --- requests ---

    def left(self, entry: Entry) -> None:
        """End its call."""
        entry.note[0].cancel()

    def advance(self) -> None:
        """Begin what waits, with the generation that serves now."""
        while self.queued and (calls := self._generations[self._serving.number]).has_room:
            entry = self.first
            self.begin(entry)
            self.record.calls += 1
            self.record.members += 1
            self._newest = (entry.ask.value,)
            number = self._serving.number
            done = partial(self._done, entry, number, self._shadow(entry))
            call = calls.begin(entry.ask.value, done, part=partial(self.push, entry))
            entry.note = call, number

    def _done(
        self,
        entry: Entry,
        number: int,
        trial: Trial | None,
        answer: Any,
        error: BaseException | None,
        runs: int,
    ) -> None:
        if error is None:
            count = f"answered by {number}"
            self.record.more[count] = self.record.more.get(count, 0) + (not entry.is_over)
            self.answer(entry, Served(answer, number))
        else:
            self.record.missed[str(number)] += not entry.is_over
            name = self._serving.stages[number].name
            self.fail(entry, stage_failed(self.record.name, name, entry.number, runs, error))
        if trial is not None:
            self._compare(trial, entry.number, "old", answer, error)
        self._retire()
        self.turn()

    # --- swaps ---

    @handles(Swap)
    def swap(self, message: Swap) -> Promise[Swapped]:
        """Load a model beside; the answer comes when it serves.

        Raises:
            InvalidArgument: another swap is under way.
        """
        self._require_no_trial()
        serving = self._serving
        serving.made += 1
        loop = self.context.event_loop
        promise: Promise[Swapped] = Promise(loop, partial(self.context.run, self, self._give_up))
        trial = self._trial = Trial(message, serving.made, promise)
        serving.stages[trial.number] = message.stage
        calls = self._generations[trial.number] = self.calls_of(message.stage)
        self.record.decide("loading", (), f"generation {trial.number}: {message.stage.name}")
        for value in message.warm_up or self._newest:
            for _ in range(max(1, len(message.stage.devices))):  # each goes to another one
                trial.warming += 1
                trial.calls.append(calls.begin(value, partial(self._warmed, trial)))
        self._go_on(trial)
        return promise

    def _require_no_trial(self) -> None:
        if self._trial is not None:
            text = f"{self.record.name} is being swapped to generation {self._trial.number}"
            raise InvalidArgument(f"{text}; await that, or cancel it")

    def _warmed(self, trial: Trial, answer: Any, error: BaseException | None, runs: int) -> None:
        del answer, runs
        trial.warming -= 1
        if self._trial is not trial:
            self._retire()
        elif error is not None:
            self._refuse(trial, f"it failed while it warmed up: {type(error).__name__}", error)
        else:
            self._go_on(trial)

    def _shadow(self, entry: Entry) -> Trial | None:
        """Have the new model answer a request, too, where it is one of the share."""
        trial = self._trial
        if trial is None or trial.warming or trial.sent >= trial.swap.compare:
            return None
        calls = self._generations[trial.number]
        trial.owed = min(1.0, trial.owed + trial.swap.shadow)
        if trial.owed < 1.0 - 1e-9 or not calls.has_room:
            return None
        trial.owed -= 1.0
        trial.sent += 1
        trial.answers[entry.number] = {}

        def done(answer: Any, error: BaseException | None, runs: int) -> None:
            del runs
            self._compare(trial, entry.number, "new", answer, error)
            self._retire()

        trial.calls.append(calls.begin(entry.ask.value, done))
        return trial

    def _compare(
        self, trial: Trial, number: int, whose: str, answer: Any, error: BaseException | None
    ) -> None:
        """Take in one of the two answers to a request."""
        if self._trial is not trial:
            return
        if error is not None and whose == "new":
            why = f"it failed on request {number}: {type(error).__name__}"
            self._refuse(trial, why, error)
            return
        if error is not None:  # nothing to compare with: another request takes its place
            del trial.answers[number]
            trial.sent -= 1
            return
        found = trial.answers.get(number)
        if found is None:  # the old one failed
            return
        found[whose] = answer
        if len(found) < 2:  # noqa: PLR2004 - old and new
            return
        del trial.answers[number]
        trial.compared += 1
        try:
            alike = bool(trial.swap.agree(found["old"], found["new"]))
        except Exception as raised:  # noqa: BLE001 - the user's
            self._refuse(trial, f"agree() raised {type(raised).__name__}", raised)
            return
        if not alike:
            trial.differing += 1
            self.record.decide("differs", (number,), f"generation {trial.number} answers otherwise")
        self._go_on(trial)

    def _go_on(self, trial: Trial) -> None:
        """Switch, or refuse, when all is known."""
        swap = trial.swap
        if trial.warming or trial.compared < swap.compare:
            return
        if trial.differing > swap.most_differing * swap.compare:
            text = f"{trial.differing} of {trial.compared} answers differ"
            self._refuse(trial, text, None)
            return
        self._trial = None
        serving = self._serving
        serving.before, serving.number = serving.number, trial.number
        self.record.more["generation"] = trial.number
        why = f"generation {trial.number} serves, {trial.compared} answers compared"
        self.record.decide("switched", (), why)
        self._retire()
        trial.promise.resolve(Swapped(trial.number, trial.compared, trial.differing))
        self.turn()

    def _refuse(self, trial: Trial, why: str, error: BaseException | None) -> None:
        """Serve on with the old model."""
        text = f"{self.record.name} was not swapped to generation {trial.number}: {why}"
        refused = SwapRefused(text, compared=trial.compared, differing=trial.differing)
        refused.__cause__ = error
        self.record.decide("swap refused", (), why)
        self._drop(trial)
        trial.promise.reject(refused)

    def _give_up(self, promise: Promise[Swapped]) -> None:
        trial = self._trial
        if trial is not None and trial.promise is promise:
            self._drop(trial)
            promise.reject(Cancelled(f"the swap to generation {trial.number} was cancelled"))

    def _drop(self, trial: Trial) -> None:
        self._trial = None
        for call in trial.calls:
            call.cancel()
        self._retire()

    @handles(RollBack)
    def roll_back(self, message: RollBack) -> int:
        """Switch back.

        Raises:
            InvalidArgument: there is nothing before, or a swap is under way.
        """
        del message
        self._require_no_trial()
        serving = self._serving
        if serving.before is None:
            raise InvalidArgument(f"{self.record.name} has no generation before {serving.number}")
        serving.number, serving.before = serving.before, None
        self.record.more["generation"] = serving.number
        self.record.decide("rolled back", (), f"generation {serving.number} serves")
        self._retire()
        self.turn()
        return serving.number

    def _retire(self) -> None:
        """End generations that are needed no more, once they have drained."""
        serving, trial = self._serving, self._trial
        needed = {serving.number, serving.before, None if trial is None else trial.number}
        for number, calls in list(self._generations.items()):
            if number not in needed and not calls.running:
                del self._generations[number]
                self._serving.stages.pop(number, None)
                self.drop_calls(calls)
                self.record.more.pop(f"answered by {number}", None)
                self.record.decide("retired", (), f"generation {number}")
