"""Reading what a pipeline is fed with, one item at a time, without blocking its event loop."""

from collections.abc import AsyncIterable, Iterable
from typing import Any

from accel_lab.pipeline.threads import Threads

AT_HAND = (list, tuple, range)
"""What gives its next item at once; anything else may take its time, and is read in a thread."""


class Exhausted(Exception):
    """There is no further item."""


class Reader:
    """Reads an iterable of either kind.

    Parameters:
        items: for each run it is asked for an iterator anew.
        threads: one, in which all of it is read: a generator may be bound to its thread.
    """

    def __init__(self, items: Iterable[Any] | AsyncIterable[Any], threads: Threads) -> None:
        self._threads = threads
        self._items = items
        self._is_async = isinstance(items, AsyncIterable)
        self._iterator: Any = None

    async def read(self) -> Any:
        """Return the next item.

        Raises:
            Exhausted: there is none.
        """
        if self._is_async:
            if self._iterator is None:
                self._iterator = aiter(self._items)  # type: ignore[arg-type]
            try:
                return await anext(self._iterator)
            except StopAsyncIteration:
                raise Exhausted from None
        if isinstance(self._items, AT_HAND):
            return self._next()
        return await self._threads.call(self._next)

    def _next(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self._items)  # type: ignore[arg-type]
        try:
            return next(self._iterator)
        except StopIteration:
            raise Exhausted from None

    async def close(self) -> None:
        """Close the iterator, if it is a generator, so that its `finally` runs now."""
        iterator, self._iterator = self._iterator, None
        if self._is_async:
            if hasattr(iterator, "aclose"):
                await iterator.aclose()
        elif hasattr(iterator, "close") and hasattr(iterator, "throw"):
            await self._threads.call(iterator.close)
