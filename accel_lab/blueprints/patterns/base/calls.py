"""Calls of a stage's function in threads, run again after faults; what comes of them, on the loop.

A thread waits for the replies that the function returns, since who waits reads the wire. Nothing
here is called by two threads, save what says so: it belongs to the event loop.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from traceback import clear_frames
from typing import Any

from accel_lab.actor.actor import Actor
from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Relay, Stream
from accel_lab.blueprints.patterns.base.stage import Stage
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import Cancelled
from accel_lab.pipeline.faults import is_fault
from accel_lab.pipeline.handles import exchanged, moved, replies_in
from accel_lab.pipeline.stage import Choice, Functions

Done = Callable[[Any, BaseException | None, int], object]
"""Gets what came of a call, and how often it was run."""


class Call:
    """One call, however often it is run.

    Parameters:
        value: what the function gets.
        part: gets each part of what a generator yields, or the whole of another answer, on the
            event loop.
        again: called before the call is run again.
    """

    def __init__(
        self,
        value: Any,
        done: Done,
        part: Callable[[Any], object] | None,
        again: Callable[[], object] | None,
    ) -> None:
        self.value, self.done, self.part, self.again = value, done, part, again
        self.device: Device | None = None
        self.runs = 0
        self.is_stream = self.told = False
        self.is_cancelled = False
        self.waits_for: tuple[Reply[Any], ...] = ()

    def cancel(self) -> None:
        """Have nothing more come of it; what its function waits for is taken back."""
        self.is_cancelled = True
        for reply in self.waits_for:
            reply.cancel()


class Calls:
    """Calls one stage's function for an actor, `parallelism` times at once at most."""

    def __init__(self, actor: Actor, stage: Stage, record: Record) -> None:
        self.stage = stage
        self._under_way: set[Call] = set()
        self._actor, self._record = actor, record
        self._functions, self._choice = Functions(stage.plan), Choice(stage.plan)
        self._gates = {device: threading.Lock() for device in stage.devices}
        self._jobs: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ended = False

    @property
    def running(self) -> int:
        """How many calls are not over."""
        return len(self._under_way)

    @property
    def has_room(self) -> bool:
        """Whether another call may begin now."""
        return self.running < self.stage.plan.parallelism

    def begin(
        self,
        value: Any,
        done: Done,
        *,
        part: Callable[[Any], object] | None = None,
        again: Callable[[], object] | None = None,
    ) -> Call:
        """Call the function, and then `done` on the event loop, in a turn of its own."""
        call = Call(value, done, part, again)
        self._under_way.add(call)
        self._start(call)
        return call

    def forget(self) -> None:
        """Have what was built built again: it may lie in a context that is lost."""
        self._functions.forget()

    def end(self) -> None:
        """Take back what is under way, and have the threads end after it; returns at once."""
        self._ended = True
        for call in self._under_way:
            call.cancel()
        for _ in self._threads:
            self._jobs.put(None)

    def _start(self, call: Call) -> None:
        call.runs += 1
        call.device = self._choice.take(call.value)
        if self.stage.inline:
            self._call_inline(call)
            return
        if self.running > len(self._threads) and len(self._threads) < self.stage.plan.parallelism:
            name = f"{self._record.name} {self.stage.name} {len(self._threads)}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put(call)

    def _soon(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function of the actor's in a turn of its own; any thread."""
        context = self._actor.context
        context.event_loop.call_soon(context.run, self._actor, function, *args)

    def _over(self, call: Call, value: Any, error: BaseException | None) -> None:
        """Take in what came of a run: run it again after a fault, or hand it on."""
        self._choice.give_back(call.device)
        if error is not None and self._may_run_again(call, error):
            self._record.reruns += 1
            self._functions.forget(call.device)
            if call.again is not None:
                call.again()
            self._start(call)
            return
        self._under_way.remove(call)
        if error is None and call.part is not None and not call.is_stream:
            call.part(value)
        call.done(value, error, call.runs)

    def _may_run_again(self, call: Call, error: BaseException) -> bool:
        tries = not call.is_cancelled and not call.told and not self._ended
        if not tries or call.runs > self.stage.plan.retries:
            return False
        return is_fault(error, has_another=self._choice.has_another)

    # --- in a thread ---

    def _serve(self) -> None:
        while (call := self._jobs.get()) is not None:
            value, error = None, None
            try:
                value = self._run(call)
            except BaseException as raised:  # noqa: BLE001 - whoever asked is told
                clear_frames(raised.__traceback__)  # they hold what the function got
                error = raised
            self._soon(self._over, call, value, error)
            del call, value, error

    def _run(self, call: Call) -> Any:
        if call.is_cancelled:
            raise Cancelled("nobody waits for this call any more")
        gate = nullcontext() if call.device is None else self._gates[call.device]
        with gate:
            outcome = self._functions.call(call.device, moved(call.value, call.device))
            if isinstance(outcome, Iterator):
                return self._all_parts(call, outcome)
        return self._settled(call, outcome)

    def _all_parts(self, call: Call, parts: Iterator[Any]) -> list[Any]:
        """Tell each part as it comes; return all of them."""
        call.is_stream = True
        found = []
        for one in parts:
            part = self._settled(call, one)
            found.append(part)
            if call.part is not None:
                call.told = True
                self._soon(call.part, part)
            if call.is_cancelled:
                raise Cancelled("nobody waits for this call any more")
        return found

    def _settled(self, call: Call, value: Any) -> Any:
        """Wait for the replies of a value, and fetch its arrays."""
        failure: BaseException | None = None
        for reply in list(replies_in(value)):
            try:
                self._wait(call, reply)
            except BaseException as error:  # noqa: BLE001 - the others are waited for first
                failure = failure or error
        if failure is not None:
            raise failure
        return exchanged(value, partial(self._fetched, call))

    def _fetched(self, call: Call, reply: Reply[Any]) -> Any:
        answer = reply.result()
        if isinstance(answer, AccelRef):
            return self._wait(call, answer.device.get(answer))
        return answer

    @staticmethod
    def _wait(call: Call, reply: Reply[Any]) -> Any:
        call.waits_for = (reply,)
        if call.is_cancelled:  # meanwhile: one of the two sees the other
            reply.cancel()
        try:
            return reply.result()
        finally:
            call.waits_for = ()

    # --- on the event loop ---

    def _relay(self, call: Call, stream: Stream) -> None:
        """Tell the parts of another pattern's answer as they come, without a thread."""
        call.is_stream, call.waits_for = True, (stream.reply,)

        def told(part: Any) -> None:
            call.told = True
            if call.part is not None:
                call.part(part)

        Relay(stream, self._soon, told, partial(self._over, call))

    def _call_inline(self, call: Call) -> None:
        try:
            outcome = self._functions.call(call.device, call.value)
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            clear_frames(error.__traceback__)
            self._soon(self._over, call, None, error)
            return
        if isinstance(outcome, Stream):
            self._relay(call, outcome)
            return
        replies = list(replies_in(outcome))
        if not replies:
            self._soon(self._over, call, outcome, None)
            return
        call.waits_for = tuple(replies)
        left = [len(replies)]
        seen: set[int] = set()

        def answered(number: int) -> None:
            if number in seen:  # a waiter may be called twice
                return
            seen.add(number)
            left[0] -= 1
            if not left[0]:
                failed = [one.error for one in replies if one.error is not None]
                value = None if failed else exchanged(outcome, lambda one: one.result(0.0))
                self._over(call, value, failed[0].take() if failed else None)

        for number, reply in enumerate(replies):
            reply.add_waiter(partial(self._soon, answered, number))
