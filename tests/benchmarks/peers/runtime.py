"""What is measured of an actor system: one actor that counts, asked and told."""

from typing import Protocol


class Runtime(Protocol):
    """An actor system with one `Counter`, used from one asyncio loop.

    The caller awaits every answer, as a notebook's cell does.
    """

    async def start(self) -> None:
        """Start the system and its actor; returns when the actor answers."""

    async def ask(self) -> int:
        """Send an empty message and await the answer: how many messages the actor was told."""

    async def tell_many(self, count: int) -> None:
        """Send empty messages whose answers nobody waits for, one after another."""

    async def stop(self) -> None:
        """Stop the actor and its system, and wait for its processes."""


class Counter:
    """The actor's state and its two methods; a system adds what makes it an actor."""

    def __init__(self) -> None:
        self.told = 0

    def ask(self) -> int:
        """Answer."""
        return self.told

    def tell(self) -> None:
        """Count."""
        self.told += 1
