"""Where a pipeline begins: what its items come from."""

from collections.abc import AsyncIterable, Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab.actor.supervision import Strategy
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.faults import STRATEGY
from accel_lab.pipeline.pipeline import Pipeline
from accel_lab.pipeline.stage import Stage, require_count


class Source(Pipeline):
    """A pipeline that has no stages yet: `Source(items).stage(f, devices=gpu).sink(g)`.

    Parameters:
        items: an iterable, or an async iterable. A generator is read in a thread. It is read no
            further ahead than there is room for.
        ahead: how many items are read before the first stage has room for them.
        strategy: whom a stage's fault restarts, as `System(strategy=…)` for devices: that stage
            and those after it (`RestForOne`), or as `OneForOne` and `AllForOne` say. When its
            budget of restarts is used up, the fault fails the pipeline.
        name: of the pipeline in events, errors and its table.

    Raises:
        InvalidArgument: `items` is no iterable, or `ahead` is below 1.
    """

    def __init__(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        ahead: int = 1,
        strategy: Strategy = STRATEGY,
        name: str = "pipeline",
    ) -> None:
        if not isinstance(items, AsyncIterable) and not hasattr(items, "__iter__"):
            raise InvalidArgument(f"a Source takes an iterable, and not {items!r}")
        require_count(ahead, "ahead", 1)
        super().__init__(name, items, (Stage(name="source", capacity=ahead),), strategy)

    @staticmethod
    def files(
        paths: Iterable[str | Path],
        load: Callable[[Any], Any] = np.load,
        *,
        ahead: int = 4,
        threads: int = 2,
        name: str = "pipeline",
    ) -> Pipeline:
        """Return a pipeline that loads files, in threads and ahead of what needs them.

        Parameters:
            load: returns the contents of a path.
            ahead: how many files are loaded, or being loaded, and not passed on.
            threads: how many are loaded at a time.

        Raises:
            InvalidArgument: `ahead` is below `threads`, or `threads` below 1.
        """
        source = Source(paths, name=name)
        return source.stage(load, parallelism=threads, capacity=ahead, name="load")
