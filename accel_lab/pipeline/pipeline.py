"""Stages in a row over a source: described once, and run as often as the source can be read."""

import asyncio
import contextlib
import contextvars
import math
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from typing import Any

from accel_lab.actor.reply import GLANCE_S
from accel_lab.actor.supervision import Strategy
from accel_lab.errors import InvalidArgument, StageFailed
from accel_lab.pipeline.live import LiveTables
from accel_lab.pipeline.progress import Progress
from accel_lab.pipeline.reader import Exhausted
from accel_lab.pipeline.run import CLOSE_S, Run
from accel_lab.pipeline.seats import Seats
from accel_lab.pipeline.stage import RETRIES, OnError, Policy, Stage, stage_of
from accel_lab.uncopied import Uncopied

TURNS = 3
"""After so many turns of its loop an `async for` that was left is being closed."""


class _Flow(Uncopied):
    """What can be run: a source, and its stages."""

    _instead = "make another from its source"

    def __init__(
        self,
        name: str,
        items: Iterable[Any] | AsyncIterable[Any],
        stages: tuple[Stage, ...],
        strategy: Strategy,
    ) -> None:
        self.name = name
        self._items = items
        self._stages = stages
        self._strategy = strategy
        self._run: Run | None = None
        self._over: asyncio.Future[None] | None = None
        self._tables = LiveTables(lambda: self.progress)

    @property
    def progress(self) -> Progress:
        """How far it is, or how far the last run came; any thread."""
        if self._run is not None:
            return self._run.progress()
        stages = [Seats(stage, n).progress() for n, stage in enumerate(self._stages)]
        return Progress(self.name, "ready", 0.0, tuple(stages))

    @property
    def skipped(self) -> list[StageFailed]:
        """Why items were left out in the last run, of the newest thousand."""
        return [] if self._run is None else list(self._run.skipped)

    def show(self) -> None:
        """Show its table here, which follows the run; call it before that begins."""
        self._tables.add()

    async def _outcomes(self) -> AsyncGenerator[Any, None]:
        """Run it, and yield what comes out; closing this takes back what is in flight.

        Raises:
            InvalidArgument: it is running.
            StageFailed: an item could not be computed.
        """
        await self._left()
        loop = asyncio.get_running_loop()
        over = self._over = loop.create_future()
        run = self._run = Run(self.name, self._items, self._stages, self._strategy)
        following = loop.create_task(self._tables.follow())
        try:
            run.start()
            while True:
                try:
                    outcome = await run.next()
                except Exhausted:
                    break
                yield outcome
                del outcome  # nobody holds it while the next one is computed
        finally:
            try:
                await run.close()
            finally:
                following.cancel()
                if not over.done():
                    over.set_result(None)
                self._tables.refresh()

    async def _left(self) -> None:
        """Wait for the end of a run that was left just now, if that is in this loop.

        In another loop it is not waited for: that may be the caller's, as in a notebook's next
        cell, which is blocked. It begins nothing more, and the runs share no state.

        Raises:
            InvalidArgument: it is running.
        """
        over, run = self._over, self._run
        if over is None or run is None or over.done():
            return
        if over.get_loop() is asyncio.get_running_loop():
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if run.is_closing:
                await over
                return
        elif run.is_closing:
            return
        raise InvalidArgument(f"{self.name} is running; make another one from its source")

    def _blocking(self, run: Callable[[], Any], timeout_s: float | None) -> Any:
        """Run it in a loop of a thread's own, while the calling thread waits.

        An interrupt, and the end of the time, take back what is in flight.
        """
        done, given_up = threading.Event(), threading.Event()
        outcome: list[Any] = []
        failure: list[BaseException] = []
        running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

        async def main() -> Any:
            task = asyncio.current_task()
            assert task is not None  # this runs in one
            running.append((asyncio.get_running_loop(), task))
            if given_up.is_set():
                raise asyncio.CancelledError
            return await run()

        def work() -> None:
            try:
                outcome.append(asyncio.run(main()))
            except BaseException as error:  # noqa: BLE001 - the calling thread raises it
                failure.append(error)
            finally:
                done.set()

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(work,), name=self.name, daemon=True)
        in_time = False
        try:
            thread.start()  # an interrupt may come in here, too
            in_time = _wait(done, timeout_s)
        finally:
            if not in_time:
                given_up.set()
                with contextlib.suppress(RuntimeError):  # the loop is closed: it is done
                    for loop, task in running:
                        loop.call_soon_threadsafe(task.cancel)
                if thread.ident is not None and _wait(done, 2 * CLOSE_S):
                    thread.join()
        if not in_time:
            raise TimeoutError(f"{self.name} was not done within {timeout_s:g} s")
        thread.join()
        if failure:
            raise failure[0]
        return outcome[0]

    def __repr__(self) -> str:
        return repr(self.progress)

    def _repr_html_(self) -> str:
        return self.progress._repr_html_()


def _wait(done: threading.Event, timeout_s: float | None) -> bool:
    """Wait for an event; wakes now and then, for the system may give Ctrl-C to any thread."""
    until = math.inf if timeout_s is None else time.monotonic() + timeout_s
    while not done.wait(min(GLANCE_S, max(0.0, until - time.monotonic()))):
        if time.monotonic() >= until:
            return False
    return True


class Pipeline(_Flow):
    """Gives what its last stage returns: `async for item in pipeline`, or all of it at once.

    What is shown of it in a notebook is its table: how many items each stage holds, and for how
    long it waited for input and for room. Leaving `async for` closes the source and takes back what
    is in flight, when Python collects the iterator; `contextlib.aclosing(aiter(pipeline))` does it
    there and then.
    """

    def stage(
        self,
        function: Callable[..., Any] | None = None,
        *,
        build: Callable[..., Any] | None = None,
        devices: Any = None,
        policy: Policy | None = None,
        parallelism: int | None = None,
        capacity: int | None = None,
        ordered: bool = True,
        retries: int = RETRIES,
        on_error: OnError = "raise",
        writes_input: bool = False,
        name: str | None = None,
    ) -> "Pipeline":
        """Return a pipeline with one more stage; this one stays as it is.

        The function is called in a thread; an `async def` is awaited. It may be called again with
        an item when a context was lost, so it must not write to that. For one device it is called
        with one item after the other, in their order; it returns replies rather than waits for
        them, so that several are in flight. What waits in a thread cannot be stopped.

        Parameters:
            function: called with `(device, item)`, or with `(item)` when there are no devices. It
                returns a handle, a reply, a value, or a tuple, list or dict of these. Buffers of
                other devices in its item are copied to its own first.
            build: called with a device, or with nothing when there are none; it returns what is
                called with `(item)`, as a class does: a model, say. It is called once for each
                device, and again when the stage restarts. A class given as `function` is one.
            devices: a device, a list of devices, or a System for all of its devices.
            policy: `policy(devices, item)` returns one of them; else the item goes to the one with
                fewest items of this stage, in turn.
            parallelism: how many items are called for, or in flight, at a time; two for each device
                when not given, and one without devices.
            capacity: how many items the stage holds at most: waiting, running, and done but not
                passed on. Twice `parallelism` when not given.
            ordered: whether items leave it in the order in which they came.
            retries: how often an item is run again after faults, before they fail it.
            on_error: whether a failure of the function fails the pipeline, or leaves out the item;
                see `skipped`.
            writes_input: whether the function does write to its item: run again, it then gets one
                that is computed anew from the source.
            name: what it is called in tables, events and errors; as the function when not given.

        Raises:
            InvalidArgument: an option does not fit.
        """
        stage = stage_of(
            function,
            build,
            devices,
            policy,
            parallelism,
            capacity,
            retries,
            on_error,
            name=name,
            number=len(self._stages),
            ordered=ordered,
            writes_input=writes_input,
        )
        return Pipeline(self.name, self._items, (*self._stages, stage), self._strategy)

    def sink(
        self, function: Callable[[Any], Any], *, retries: int = RETRIES, name: str = "sink"
    ) -> "Drain":
        """Return what gives each item to a function, once, and one after the other.

        It is called in a thread; an `async def` is awaited. A restart never stops it in the middle.
        Only if it raises an error of a lost context itself, it is called again.

        Raises:
            InvalidArgument: it is no function.
        """
        if not callable(function):
            raise InvalidArgument(f"a sink is a function, and {function!r} is none")
        last = Stage(name=name, function=function, retries=retries, capacity=1, is_sink=True)
        return Drain(self.name, self._items, (*self._stages, last), self._strategy)

    def __aiter__(self) -> AsyncGenerator[Any, None]:  # noqa: PYI058 - `aclosing` takes it
        """Run it, and give what comes out."""
        return self._outcomes()

    async def run(self) -> list[Any]:
        """Run it to its end, and return all that comes out.

        Raises:
            InvalidArgument: it is running.
            StageFailed: an item could not be computed.
        """
        return [outcome async for outcome in self._outcomes()]

    def result(self, timeout_s: float | None = None) -> list[Any]:
        """Do what `run` does, and block until it is done; works where a loop runs, too.

        Raises:
            TimeoutError: not within `timeout_s` seconds; what was in flight is taken back.
        """
        done: list[Any] = self._blocking(self.run, timeout_s)
        return done


class Drain(_Flow):
    """A pipeline that ends in a sink."""

    async def run(self) -> Progress:
        """Run it to its end, and return its table.

        Raises:
            InvalidArgument: it is running.
            StageFailed: an item could not be computed.
        """
        async for _ in self._outcomes():
            pass
        return self.progress

    def result(self, timeout_s: float | None = None) -> Progress:
        """Do what `run` does, and block until it is done; works where a loop runs, too.

        Raises:
            TimeoutError: not within `timeout_s` seconds; what was in flight is taken back.
        """
        done: Progress = self._blocking(self.run, timeout_s)
        return done
