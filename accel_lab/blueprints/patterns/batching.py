"""A server that answers many requests with one call of a function."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, ClassVar

from accel_lab.actor.actor import handles
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.batcher import (
    MAX_BATCH,
    MAX_WAIT_S,
    Batcher,
    require_wait,
)
from accel_lab.blueprints.patterns.base.form import Form
from accel_lab.blueprints.patterns.base.pattern import (
    Limits,
    Overflow,
    PatternActor,
    Place,
    Service,
)
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Entry
from accel_lab.blueprints.patterns.base.stage import Stage, as_stage
from accel_lab.pipeline.stage import require_count


class Flush(Message[int], frozen=True):
    """Have all that waits go now; the answer is how many that are."""


class DynamicBatchingServer(Service):
    """Collects requests, and calls a function with a list of their values.

    A batch begins when `max_batch` requests of one bucket wait, when the first of them has waited
    for `max_wait_s`, or after `flush_now`; and then as soon as the stage's `parallelism` allows.

    The function returns as many answers, in their order. An exception in place of one fails that
    request alone, and another number of answers fails all of that call with WrongAnswer. A function
    that yields has each request's parts streamed: it yields lists of one part for each. Such a call
    is not run again once a part was told.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        function: a function, a `@stage`, or another pattern.
        max_batch: how many requests a call has at most.
        max_wait_s: how long a request waits for others; one with a `timeout_s`, half of that at
            most.
        stack, pad_to, pad_value, cut, bucket: how values are put together; see `Form`.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree; as the function's when not given.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "dynamic batching"

    def __init__(
        self,
        place: Place,
        function: Stage | Callable[..., Any] | Service,
        *,
        max_batch: int = MAX_BATCH,
        max_wait_s: float = MAX_WAIT_S,
        stack: bool = False,
        pad_to: Sequence[int] = (),
        pad_value: float = 0,
        cut: bool = False,
        bucket: Callable[[Any], Hashable] | None = None,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str | None = None,
    ) -> None:
        stage = as_stage(function)
        require_count(max_batch, "max_batch", 1)
        form = Form(stack=stack, pad_to=tuple(pad_to), pad_value=pad_value, cut=cut, bucket=bucket)
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        patience_s = require_wait(max_wait_s)
        make = partial(
            BatchingActor,
            limits=limits,
            stage=stage,
            form=form,
            max_batch=max_batch,
            max_wait_s=patience_s,
        )
        super().__init__(place, name or stage.name, make)

    def flush_now(self) -> Reply[int]:
        """Have all that waits go now, without waiting for others; return the reply of how many."""
        reply: Reply[int] = self._send(Flush())
        return reply


class BatchingActor(PatternActor):
    """Has one batcher."""

    def __init__(
        self,
        record: Record,
        limits: Limits,
        stage: Stage,
        form: Form,
        max_batch: int,
        max_wait_s: float,
    ) -> None:
        super().__init__(record, limits)
        self._make = stage, form, max_batch, max_wait_s

    def started(self) -> None:
        """Make the batcher."""
        super().started()
        stage, form, max_batch, max_wait_s = self._make
        calls = self.calls_of(stage)
        self._batcher = Batcher(self, calls, form, max_batch, max_wait_s, self.answer)

    def enqueue(self, entry: Entry) -> None:
        """Have it wait for others."""
        self._batcher.add(entry)

    def dequeue(self, entry: Entry) -> None:
        """Take it out of its batch."""
        self._batcher.remove(entry)

    def left(self, entry: Entry) -> None:
        """End its call, if nobody else waits for that."""
        self._batcher.left(entry)

    def advance(self) -> None:
        """Begin the batches that are due."""
        self._batcher.advance()

    @handles(Flush)
    def flush(self, message: Flush) -> int:
        """Have all that waits go."""
        del message
        count = self._batcher.flush()
        self.turn()
        return count
