"""An asyncio loop of one's own, in a notebook's cell too, where a loop runs already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")


def run(sampling: Coroutine[Any, Any, R]) -> R:
    """Run it to its end and return what it returns; in another thread where a loop runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(sampling)
    with ThreadPoolExecutor(1, "accel_lab-bench") as thread:
        return thread.submit(asyncio.run, sampling).result()
