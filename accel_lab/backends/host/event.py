"""Events on the host: what is enqueued is done, so each is reached when it is recorded."""

import time
from typing import Any, NamedTuple


class HostMark(NamedTuple):
    """When a mark was made, in seconds: by a clock that only goes on, and since 1970."""

    ticks: float
    wall: float


class HostEvent:
    """Reads the machine's clocks."""

    def record(self, stream: object) -> HostMark:  # noqa: ARG002 - there is one thread
        """Return the time now."""
        return HostMark(time.perf_counter(), time.time())

    def wait(self, stream: object, mark: HostMark) -> None:
        """Return at once."""

    def clear(self, out: Any) -> None:
        """Write zeros."""
        out[...] = 0

    def reached(self, mark: HostMark) -> bool:  # noqa: ARG002 - it is
        """Say yes."""
        return True

    def elapsed_ms(self, start: HostMark, end: HostMark) -> float:
        """Return the difference."""
        return (end.ticks - start.ticks) * 1e3

    def moment(self, mark: HostMark) -> float:
        """Return it."""
        return mark.wall
