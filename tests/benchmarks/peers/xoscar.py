"""xoscar: an actor in a process of its own, reached over a Unix or TCP socket, native asyncio."""

from typing import Any

from tests.benchmarks.peers.runtime import Counter


class SubPool:
    """An actor in the one subprocess of a pool."""

    def __init__(self) -> None:
        self.pool: Any = None
        self.ref: Any = None

    async def start(self) -> None:
        """Start the pool and create the actor in its subprocess."""
        import xoscar

        class CounterActor(Counter, xoscar.Actor):  # type: ignore[misc]  # xoscar may be absent
            pass

        self.pool = await xoscar.create_actor_pool("127.0.0.1", n_process=1)
        self.ref = await xoscar.create_actor(
            CounterActor,
            uid="counter",
            address=self.pool.external_address,
            allocate_strategy=xoscar.allocate_strategy.ProcessIndex(1),
        )

    async def ask(self) -> int:
        """Await the answer."""
        told: int = await self.ref.ask()
        return told

    async def tell_many(self, count: int) -> None:
        """Await that each message is on its way."""
        for _ in range(count):
            await self.ref.tell.tell()

    async def stop(self) -> None:
        """Stop the pool and its process."""
        if self.pool is not None:
            await self.pool.stop()
