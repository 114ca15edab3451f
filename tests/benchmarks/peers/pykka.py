"""pykka: an actor is a thread of the same process, with an unbounded queue.

Its futures can be awaited, but `await` blocks the event loop until the answer is there. The form
that leaves the loop free waits in a thread of the loop's executor.
"""

import asyncio
from typing import Any

from tests.benchmarks.peers.runtime import Counter

ASK, TELL = {"do": "ask"}, {"do": "tell"}


class Awaited:
    """An actor whose answers are awaited as pykka offers it; the loop stands still meanwhile."""

    def __init__(self) -> None:
        self.ref: Any = None

    async def start(self) -> None:
        """Start the thread."""
        import pykka

        class CounterActor(pykka.ThreadingActor):  # type: ignore[misc]  # pykka may be absent
            def __init__(self) -> None:
                super().__init__()
                self.counter = Counter()

            def on_receive(self, message: Any) -> int | None:
                if message is ASK:
                    return self.counter.ask()
                self.counter.tell()
                return None

        self.ref = CounterActor.start()

    async def ask(self) -> int:
        """Await the future itself."""
        told: int = await self.ref.ask(ASK, block=False)
        return told

    async def tell_many(self, count: int) -> None:
        """Put messages into the queue."""
        for _ in range(count):
            self.ref.tell(TELL)

    async def stop(self) -> None:
        """End the thread."""
        self.ref.stop()


class InExecutor(Awaited):
    """An actor whose answers are waited for in another thread, so that the loop goes on."""

    async def ask(self) -> int:
        """Await a thread that waits for the future."""
        future = self.ref.ask(ASK, block=False)
        return await asyncio.get_running_loop().run_in_executor(None, future.get)
