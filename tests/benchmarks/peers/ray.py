"""Ray on one machine: an actor in a worker process, behind a scheduler and an object store."""

import os
import tempfile
from typing import Any

from tests.benchmarks.peers.runtime import Counter

# Nothing is reported anywhere, and no token is written into the user's home.
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
OBJECT_STORE_BYTES = 80 << 20


class Local:
    """An actor of a Ray that this process starts for itself."""

    def __init__(self) -> None:
        self.actor: Any = None

    async def start(self) -> None:
        """Start Ray and the actor; some seconds."""
        os.environ.update(SETTINGS)
        import ray

        ray.init(
            address="local",
            num_cpus=1,
            num_gpus=0,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _temp_dir=tempfile.gettempdir(),
        )
        self.actor = ray.remote(Counter).remote()
        await self.actor.ask.remote()

    async def ask(self) -> int:
        """Await the object that the answer becomes."""
        told: int = await self.actor.ask.remote()
        return told

    async def tell_many(self, count: int) -> None:
        """Submit calls and drop their results."""
        for _ in range(count):
            self.actor.tell.remote()

    async def stop(self) -> None:
        """Stop Ray's processes."""
        import ray

        ray.shutdown()
