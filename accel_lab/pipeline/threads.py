"""Threads in which a pipeline calls functions that may block."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

_Outcome = tuple[Any, BaseException | None]


class Threads:
    """At most `limit` daemon threads, each started when it is needed; for one event loop.

    Attributes:
        busy: how many calls are under way, those that were left behind included.

    Parameters:
        discard: gets what a function returned that nobody waits for any more.
    """

    def __init__(self, name: str, limit: int, discard: Callable[[Any], object]) -> None:
        self.name = name
        self._limit = limit
        self._discard = discard
        self._calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.busy = 0

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a thread, in this task's context, and return what it returns.

        A thread cannot be stopped: a cancelled call waits for its end first, and a second
        cancellation leaves it behind.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome] = loop.create_future()
        context = contextvars.copy_context()
        self.busy += 1
        if self.busy > len(self._threads) and len(self._threads) < self._limit:
            name = f"{self.name} {len(self._threads)}"
            thread = threading.Thread(target=_serve, args=(self._calls,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._calls.put(partial(_answer, loop, future, context, function, args, self._discard))
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            try:
                await asyncio.wait([future])
            finally:
                if future.done():
                    self.busy -= 1
                    self._discard(future.result()[0])
                else:
                    future.cancel()
            raise
        self.busy -= 1
        value, error = future.result()
        if error is not None:
            raise error
        return value

    def end(self) -> None:
        """Have the threads end, each after the call that it is in; returns at once."""
        for _ in self._threads:
            self._calls.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for their end, which is near when no call is under way; whether all have ended."""
        for thread in self._threads:
            thread.join(timeout_s)
        return not any(thread.is_alive() for thread in self._threads)

    def __del__(self) -> None:
        """End them when the loop was closed in the middle."""
        self.end()


def _serve(calls: "queue.SimpleQueue[Callable[[], object] | None]") -> None:
    """Call what comes; it does not hold the `Threads`, so that these can be collected."""
    while (call := calls.get()) is not None:
        call()
        del call  # it holds the item


def _answer(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[_Outcome]",
    context: contextvars.Context,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    discard: Callable[[Any], object],
) -> None:
    """Call the function and tell the loop how it went; in a thread of these."""
    try:
        outcome: _Outcome = context.run(function, *args), None
    except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
        outcome = None, error

    def tell() -> None:
        if future.cancelled():
            discard(outcome[0])
        else:
            future.set_result(outcome)

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:  # the loop is closed: nobody waits any more
        discard(outcome[0])
