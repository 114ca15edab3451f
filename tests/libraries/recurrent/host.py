"""States and caches on the host, by NumPy."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np


class Closing:
    """Writes a line into a file when it is closed."""

    def __init__(self, log: str) -> None:
        self._log = log

    def close(self) -> None:
        """Tell, and fail where the file is to."""
        if self._log:
            thread = threading.current_thread() is threading.main_thread()
            with Path(self._log).open("a") as file:
                file.write(f"{type(self).__name__} {'on its thread' if thread else 'elsewhere'}\n")
            if self._log.endswith("fails"):
                raise OSError("it does not close")


class State(Closing):
    """Weights and what is in it."""

    def __init__(self, weights: Any, h: Any, log: str) -> None:
        super().__init__(log)
        self.weights = weights.copy()
        self.h = np.zeros(len(weights), weights.dtype) if h is None else h.copy()
        self.nbytes = int(self.weights.nbytes + self.h.nbytes)

    def checkpoint(self) -> dict[str, Any]:
        """Return what makes it again."""
        return {"weights": self.weights, "h": self.h}


class Cache(Closing):
    """Rows in blocks."""

    def __init__(self, width: int, log: str) -> None:
        super().__init__(log)
        self.width = width
        self.blocks: list[Any] = []

    def nbytes(self) -> int:
        """Return what the rows take by now."""
        return sum(int(one.nbytes) for one in self.blocks)


class HostRecurrent:
    """Calls NumPy at once."""

    def make_state(self, weights: Any, h: Any, log: str) -> State:
        """Copy the weights."""
        return State(weights, h, log)

    def make_cache(self, width: int, log: str) -> Cache:
        """Make an empty one."""
        return Cache(width, log)

    def step(self, state: State, x: Any, out: Any) -> None:
        """h = tanh(weights @ h + x)."""
        state.h = np.tanh(state.weights @ state.h + x)
        out[...] = state.h

    def append(self, cache: Cache, rows: Any) -> None:
        """Keep a copy."""
        cache.blocks.append(rows.copy())

    def rows(self, cache: Cache, dtype: str) -> Any:
        """Join the blocks."""
        return np.concatenate([np.empty((0, cache.width), dtype), *cache.blocks])

    def add(self, states: list[State], out: Any) -> None:
        """Add them up."""
        out[...] = sum(one.h for one in states)

    def overflow(self, state: State) -> Any:
        """Spoil it."""
        state.h = state.h + 1000
        return np.ones(1, np.int32)

    def restore(self, kind: str, made_of: Any) -> State:
        """Return a state that is as it was."""
        assert kind == "RnnState"
        return State(made_of["weights"], made_of["h"], "")

    def wait(self, seconds: float) -> None:
        """Sleep, as a call into a vendor's library would."""
        time.sleep(seconds)
