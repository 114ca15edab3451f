"""Dask's actors: an object in a worker process, called over TCP."""

from contextlib import AsyncExitStack
from typing import Any

from tests.benchmarks.peers.runtime import Counter


class Cluster:
    """An actor on the one worker of a local cluster."""

    def __init__(self) -> None:
        self.opened = AsyncExitStack()
        self.actor: Any = None

    async def start(self) -> None:
        """Start the scheduler, the worker and the actor."""
        from distributed import Client, LocalCluster

        cluster = LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            asynchronous=True,
        )
        await self.opened.enter_async_context(cluster)
        client = await self.opened.enter_async_context(Client(cluster, asynchronous=True))
        self.actor = await client.submit(Counter, actor=True)

    async def ask(self) -> int:
        """Await the answer."""
        told: int = await self.actor.ask()
        return told

    async def tell_many(self, count: int) -> None:
        """Begin calls and drop their futures."""
        for _ in range(count):
            self.actor.tell()

    async def stop(self) -> None:
        """Stop the worker and the scheduler."""
        await self.opened.aclose()
