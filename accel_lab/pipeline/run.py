"""One run of a pipeline in one event loop: it moves items on and starts what may be started.

All that moves an item is in `_advance`, which is called when anything has changed. Items keep their
seats while they are run again, so that a fault never has a stage hold more than it may.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterable, Iterable, Sequence
from functools import partial
from typing import Any

from accel_lab.actor.events import warn_of
from accel_lab.actor.supervision import Strategy
from accel_lab.compute.events.tree import Node
from accel_lab.display.failure import headline
from accel_lab.errors import StageFailed, StaleRef
from accel_lab.pipeline import events as facts
from accel_lab.pipeline.faults import Restarts, counts, is_fault, loses_input
from accel_lab.pipeline.handles import is_lost, is_there
from accel_lab.pipeline.progress import Progress
from accel_lab.pipeline.reader import Exhausted, Reader
from accel_lab.pipeline.seats import Item, Seats
from accel_lab.pipeline.stage import Stage
from accel_lab.pipeline.tree_node import node_of
from accel_lab.pipeline.worker import Worker

CLOSE_S = 3.0
"""How long the end waits for functions that run in threads."""
CANCEL_S = 0.5
"""How long it then waits for coroutines to heed that."""
KEPT = 1_000
"""So many failures are kept of items that were left out."""


class Run:
    """Moves the items of a source through stages; its event loop's thread alone calls it.

    Attributes:
        is_closing: whether nothing is begun any more.
        skipped: the failures of the newest items that were left out.

    Parameters:
        stages: the source's first: it runs nothing, and what it reads is done.
    """

    def __init__(
        self,
        name: str,
        items: Iterable[Any] | AsyncIterable[Any],
        stages: Sequence[Stage],
        strategy: Strategy,
    ) -> None:
        self.name = name
        self.skipped: deque[StageFailed] = deque(maxlen=KEPT)
        self.seats = [Seats(stage, position) for position, stage in enumerate(stages)]
        self._state = "ready"
        self._began = self._ended_at = 0.0
        self._workers = [Worker(name, stage) for stage in stages]
        self._reader = Reader(items, self._workers[0].threads[None])
        self._restarts = Restarts(strategy)
        self._streams = {
            id(one.events): one.events for stage in stages for one in stage.devices
        }.values()
        self._guests = {
            id(one.guests): one.guests for stage in stages for one in stage.devices
        }.values()
        self._tasks: dict[asyncio.Task[Any], Item | None] = {}
        self._read = 0
        self._is_reading = self._exhausted = self.is_closing = False
        self._failure: BaseException | None = None
        self._news: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Begin to read and to run."""
        self._state = "running"
        self._began = time.monotonic()
        for guests in self._guests:
            guests.add(self)
        self._advance()

    async def next(self) -> Any:
        """Return the next item that comes out.

        Raises:
            Exhausted: there is none.
            StageFailed: an item could not be computed; `close` has to follow.
        """
        while True:
            if self._failure is not None:
                self._state = "failed"
                raise self._failure
            last = self.seats[-1]
            item = self._ready(last)
            if item is not None:
                if last.position and not await is_there(item.value):
                    continue
                last.leave(item)
                last.passed += 1
                self._advance()
                return item.value
            if self._is_over:
                self._state = "done"
                raise Exhausted
            self._advance()  # what is lost is to be run again
            if self._failure is not None:
                continue
            self._news = asyncio.get_running_loop().create_future()
            self._account()
            try:
                await self._news
            finally:
                self._news = None

    def node(self, root: str, name: str) -> Node:
        """Return it as the tree of a system shows it; any thread."""
        return node_of(self.progress(), root, name)

    def progress(self) -> Progress:
        """Return how far it is; any thread."""
        until = self._ended_at or time.monotonic()
        seconds = until - self._began if self._began else 0.0
        stages = tuple(seats.progress() for seats in self.seats)
        return Progress(self.name, self._state, seconds, stages)

    async def close(self) -> None:
        """Take back what is in flight, end the threads, and close the source.

        A function that runs in a thread is waited for, `CLOSE_S` at most; what is left behind then
        is told of.
        """
        self.is_closing = True
        try:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await _ended(tasks)
            if not self._workers[0].threads[None].busy:
                closing = asyncio.get_running_loop().create_task(self._reader.close())
                await _ended([closing])
                if closing.done() and not closing.cancelled() and (error := closing.exception()):
                    warn_of(error, f"the source of {self.name} did not close")
        finally:
            self._account()
            for seats, worker in zip(self.seats, self._workers, strict=True):
                seats.clear()
                worker.functions.forget()
                for threads in worker.threads.values():
                    threads.end()
            if self._state == "running":
                self._state = "closed"
            self._failure = None  # its frames hold items
            self._ended_at = time.monotonic()
            for guests in self._guests:
                guests.remove(self)
        for threads in (one for worker in self._workers for one in worker.threads.values()):
            if threads.busy:
                late = TimeoutError("a function still runs; have it return replies, not wait")
                warn_of(late, f"{threads.name} leaves a thread behind")
            else:
                threads.join(CLOSE_S)

    def _advance(self) -> None:
        """Move on what may move, the last stage first, start what may start, and read."""
        if self.is_closing or self._failure is not None:
            self._tell()
            return
        for seats in reversed(self.seats):
            self._pass_on(seats)
            while (item := seats.startable()) is not None:
                self._start(seats, item)
        if not self._exhausted and not self._is_reading and self.seats[0].has_room:
            self._is_reading = True
            self._spawn(self._reader.read(), None, self._was_read)
        self._account()
        if self._is_over or self.seats[-1].ready() is not None:
            self._tell()

    @property
    def _is_over(self) -> bool:
        return self._exhausted and all(seats.is_empty for seats in self.seats)

    def _pass_on(self, seats: Seats) -> None:
        """Give what is done to the next stage, as far as that has room."""
        if seats.position + 1 == len(self.seats):
            return
        following = self.seats[seats.position + 1]
        while following.has_room and (item := self._ready(seats)) is not None:
            seats.leave(item)
            seats.passed += 1
            item.at, item.standing, item.faults = following.position, "waiting", 0
            following.seat(item)
            while (ready := following.startable()) is not None:
                self._start(following, ready)

    def _ready(self, seats: Seats) -> Item | None:
        """Return what may leave a stage; what is lost meanwhile is computed again first."""
        while (item := seats.ready()) is not None:
            if not seats.position or not is_lost(item.value):
                return item
            item.faults += 1
            if item.faults > seats.stage.retries:
                text = f"what stage {seats.stage.name} returned is lost again and again"
                self._failed(seats, item, StaleRef(text))
                if self._failure is not None:
                    return None
            else:
                self._run_again(seats, item, anew=True)
        return None

    def _run_again(self, seats: Seats, item: Item, *, anew: bool) -> None:
        item.standing = "waiting"
        item.again |= anew or seats.stage.writes_input
        seats.reruns += 1

    def _start(self, seats: Seats, item: Item) -> None:
        item.standing = "running"
        item.at = seats.position
        self._spawn(self._work(seats, item), item, partial(self._ran, seats, item))

    def _spawn(self, work: Any, item: Item | None, ended: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = item

        def end(task: asyncio.Task[Any]) -> None:
            del self._tasks[task]
            error: BaseException | None = asyncio.CancelledError("its function was cancelled")
            if not task.cancelled():
                error = task.exception()
            if self.is_closing:
                return
            if (
                task.cancelled()
                and task.cancelling()
                and (item is None or item.standing != "stopping")
            ):
                self._give_up(asyncio.CancelledError())  # the loop ends
            if self._failure is not None:
                return
            try:
                ended(None if error is not None else task.result(), error)
                self._advance()
            except BaseException as unforeseen:  # noqa: BLE001 - whoever awaits the run raises it
                self._give_up(unforeseen)

        task.add_done_callback(end)

    async def _work(self, seats: Seats, item: Item) -> Any:
        """Run one item, and the stages before it, if what they gave is gone."""
        position = seats.position
        if item.again or (position > 1 and not await is_there(item.value)):
            value = item.origin
            for item.at in range(1, position):
                value = await self._workers[item.at].work(value)
            item.at, item.value = position, value
        item.again = False
        return await self._workers[position].work(item.value)

    def _was_read(self, value: Any, error: BaseException | None) -> None:
        """Take in what the source gave."""
        self._is_reading = False
        if error is None:
            item = Item(self._read, value)
            self._read += 1
            self.seats[0].seat(item)
        elif isinstance(error, Exhausted):
            self._exhausted = True
        else:
            self._fail(self.seats[0].stage, self._read, error, runs=1)

    def _ran(self, seats: Seats, item: Item, value: Any, error: BaseException | None) -> None:
        """Take in what came of an item."""
        helps = error is not None and is_fault(
            error, has_another=self._workers[item.at].choice.has_another
        )
        stopped = item.standing == "stopping"
        if error is None:
            item.standing = "done"
            item.value = None if seats.stage.is_sink else value
        elif stopped and (helps or isinstance(error, asyncio.CancelledError)):
            self._run_again(seats, item, anew=loses_input(error))
        elif helps:
            item.faults += counts(error)
            if item.faults > seats.stage.retries or not self._restart(seats, item, error):
                self._failed(seats, item, error)
        else:
            self._failed(seats, item, error)

    def _restart(self, seats: Seats, item: Item, error: BaseException) -> bool:
        """Restart the stage that met a fault, and whom its strategy says; False: too often."""
        failed = self.seats[item.at]
        decided = self._restarts.decide(self.seats, failed, error)
        if decided is None:
            return False
        affected, attempt, delay_s = decided
        before = sum(one.reruns for one in self.seats)
        self._run_again(seats, item, anew=loses_input(error) or item.at != seats.position)
        stopped = 0
        for one in affected:
            self._workers[one.position].functions.forget()
            if not one.stage.is_sink:
                stopped += self._stop(one)
            one.paused += delay_s > 0
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self._resume, affected)
        again = sum(one.reruns for one in self.seats) - before + stopped
        self._publish(
            facts.StageRestarted(
                pipeline=self.name,
                stage=failed.stage.name,
                item=item.number,
                cause=headline(error),
                attempt=attempt,
                again=again,
                delay_s=delay_s,
            )
        )
        return True

    def _stop(self, seats: Seats) -> int:
        """Have the items that a stage is at run again, when they have come to an end."""
        meant = list(seats.running())
        for task, item in self._tasks.items():
            if any(item is one for one in meant):
                task.cancel()
        for item in meant:
            item.standing = "stopping"
        return len(meant)

    def _resume(self, affected: Sequence[Seats]) -> None:
        for seats in affected:
            seats.paused -= 1
        self._advance()

    def _failed(self, seats: Seats, item: Item, error: BaseException) -> None:
        """Leave an item out, or fail the run."""
        stage = self.seats[item.at].stage
        if seats.stage.on_error == "skip" and isinstance(error, Exception):
            seats.leave(item)
            seats.skipped += 1
            # It is kept, and the frames of the function hold the item.
            self._note(stage, item.number, error.with_traceback(None), item.faults, skipped=True)
        else:
            self._fail(stage, item.number, error, max(1, item.faults))

    def _fail(self, stage: Stage, number: int, error: BaseException, runs: int) -> None:
        if isinstance(error, Exception | asyncio.CancelledError):
            self._give_up(self._note(stage, number, error, runs, skipped=False))
        else:
            self._give_up(error)

    def _note(
        self, stage: Stage, number: int, error: BaseException, runs: int, *, skipped: bool
    ) -> StageFailed:
        times = f" {runs} times" if runs > 1 else ""
        cause = headline(error)
        text = f"stage {stage.name} of {self.name} failed{times} on item {number}: {cause}"
        failed = StageFailed(text, stage=stage.name, item=number, runs=runs)
        failed.__cause__ = error
        if skipped:
            self.skipped.append(failed)
        fact = facts.StageFailed(
            pipeline=self.name, stage=stage.name, item=number, cause=cause, skipped=skipped
        )
        self._publish(fact)
        return failed

    def _publish(self, fact: facts.StageFailed | facts.StageRestarted) -> None:
        for stream in self._streams:
            stream.publish(fact)

    def _give_up(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._tell()

    def _tell(self) -> None:
        """Wake whoever waits for the next item."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _account(self) -> None:
        """Note of each stage what it waits for."""
        for seats in self.seats:
            last = seats.position + 1 == len(self.seats)
            room = self._news is not None if last else self.seats[seats.position + 1].has_room
            blocked = not self.is_closing and not room and seats.ready() is not None
            starved = not self.is_closing and not blocked and self._starves(seats)
            seats.account(starved=starved, blocked=blocked)

    def _starves(self, seats: Seats) -> bool:
        if not seats.position:
            return self._is_reading
        before = self.seats[: seats.position]
        over = self._exhausted and all(one.is_empty for one in before)
        return not over and seats.has_free_hand


async def _ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Wait for tasks, `CLOSE_S` at most; what then waits for a thread leaves it behind."""
    left: set[asyncio.Task[Any]] = set(tasks)
    for patience_s in (CLOSE_S, CANCEL_S, CANCEL_S):
        if left:
            _, left = await asyncio.wait(left, timeout=patience_s)
        for task in left:
            task.cancel()
