"""atomr: an actor of a runtime in Rust, whose handler runs in a thread of the same process."""

from typing import Any

from tests.benchmarks.peers.runtime import Counter

ASK, TELL = "ask", "tell"


class Pinned:
    """An actor on the default dispatcher, `python-pinned`."""

    def __init__(self) -> None:
        self.system: Any = None
        self.ref: Any = None

    async def start(self) -> None:
        """Start the runtime and spawn the actor."""
        import atomr
        from atomr.system import props

        class CounterActor(atomr.Actor):  # type: ignore[misc]  # atomr may be absent
            def __init__(self) -> None:
                self.counter = Counter()

            async def handle(self, _: Any, message: str) -> int | None:
                if message == ASK:
                    return self.counter.ask()
                self.counter.tell()
                return None

        self.system = await atomr.ActorSystem.create("bench")
        self.ref = self.system.actor_of(props(CounterActor), "counter")

    async def ask(self) -> int:
        """Await the answer."""
        told: int = await self.ref.ask(ASK, timeout=60.0)
        return told

    async def tell_many(self, count: int) -> None:
        """Put messages into the mailbox."""
        for _ in range(count):
            self.ref.tell(TELL)

    async def stop(self) -> None:
        """End the runtime."""
        if self.system is not None:
            await self.system.terminate()
