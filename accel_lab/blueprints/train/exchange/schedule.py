"""The order in which the stages of a pipeline work, and how long they are idle.

Narayanan and others, "PipeDream: generalized pipeline parallelism for DNN training", 2019: each
stage goes forward as often as there are stages behind it, then forward and backward in turn, so
that it keeps few activations.
"""

import threading
import time
from typing import Any, NamedTuple

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.requests.answers import Told
from accel_lab.errors import InvalidArgument

_BEHIND_S = 10.0


class Work(NamedTuple):
    """What a stage does with a micro-batch.

    Attributes:
        is_forward: whether it computes the stage, and not its gradients.
    """

    stage: int
    micro: int
    is_forward: bool

    def waits_for(self, stages: int) -> "Work | None":
        """Return the work whose result it takes; None for the first of all."""
        if self.is_forward:
            return self._replace(stage=self.stage - 1) if self.stage else None
        if self.stage == stages - 1:
            return self._replace(is_forward=True)
        return self._replace(stage=self.stage + 1)


def of_stage(stage: int, stages: int, micros: int) -> list[Work]:
    """Return what a stage does, in its order: one forward, one backward (1F1B)."""
    ahead = min(micros, stages - stage - 1)
    order = [Work(stage, micro, is_forward=True) for micro in range(ahead)]
    for micro in range(micros):
        if ahead + micro < micros:
            order.append(Work(stage, ahead + micro, is_forward=True))
        order.append(Work(stage, micro, is_forward=False))
    return order


def in_turn(stages: int, micros: int) -> list[Work]:
    """Return the work of all stages, so that none comes before what it waits for."""
    left = [of_stage(stage, stages, micros)[::-1] for stage in range(stages)]
    order: list[Work] = []
    done: set[Work | None] = {None}
    while any(left):
        ready = [own for own in left if own and own[-1].waits_for(stages) in done]
        order += [own.pop() for own in ready]
        done.update(order[-len(ready) :])
    return order


class Bubble(NamedTuple):
    """How a pipeline's stages were used in one step.

    Attributes:
        idle: the share of all stages' time in which they had nothing to do.
        at_best: that share where all work takes equally long, and moving no time.
        busy_s: how long each stage worked.
        seconds: from the begin of the first work to the end of the last.
    """

    stages: int
    micro_batches: int
    idle: float
    at_best: float
    busy_s: tuple[float, ...]
    seconds: float

    def __repr__(self) -> str:
        what = f"{self.stages} stages, {self.micro_batches} micro-batches"
        return f"Bubble({what}: {self.idle:.0%} idle, {self.at_best:.0%} at best)"


class Stopwatch:
    """Measures a step of a pipeline, as the notebook hears of it.

    A stage's work begins when the stage is through with the work before, and what it takes is
    there. It ends when the notebook has the answer to the last message of it.
    """

    def __init__(self, stages: int, micros: int) -> None:
        self._stages, self._micros = stages, micros
        self._begun = time.perf_counter()
        self._ends: dict[Work, float] = {}
        self._all = threading.Event()
        self._held: list[Reply[Any]] = []  # an answer that nobody holds tells nobody

    def sent(self, work: Work, device: Device) -> None:
        """Note when what was sent last to a device is done."""

        def note() -> None:
            self._ends.setdefault(work, time.perf_counter())
            if len(self._ends) == 2 * self._stages * self._micros:
                self._all.set()

        # What many messages share is never done: it stands for those that nobody waits for.
        pending = reversed([*device.requests.answers.pending.values()])
        reply = next((one for one in pending if not isinstance(one, Told)), None)
        if reply is None:
            note()
        else:
            self._held.append(reply)
            reply.add_waiter(note)

    def bubble(self) -> Bubble:
        """Return how the stages were used.

        Raises:
            InvalidArgument: the step is not whole.
        """
        # The thread that hears of the last answer may be a moment behind who waits for it.
        if not self._all.wait(_BEHIND_S):
            raise InvalidArgument("the last step is not whole: run() goes on with it")
        ends, busy = self._ends, []
        for stage in range(self._stages):
            at, spent = self._begun, 0.0
            for work in of_stage(stage, self._stages, self._micros):
                before = work.waits_for(self._stages)
                begin = max(at, ends[before]) if before else at
                at = max(begin, ends[work])
                spent += at - begin
            busy.append(spent)
        seconds = max(ends.values()) - self._begun
        idle = 1 - sum(busy) / (self._stages * seconds)
        best = (self._stages - 1) / (self._micros + self._stages - 1)
        return Bubble(self._stages, self._micros, idle, best, tuple(busy), seconds)
