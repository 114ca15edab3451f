"""One collective operation under way, as the notebook sees it: who is there, and since when."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from accel_lab.actor.events import EventStream
from accel_lab.compute.events.collectives import CollectiveEnded
from accel_lab.errors import AccelError

BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "reduce": lambda _: 1.0,
    "broadcast": lambda _: 1.0,
    "send": lambda _: 1.0,
}
"""How often the whole array crosses the busiest link, as `nccl-tests` counts it."""


class Over(Protocol):
    """Takes the end of an operation: its failure, if it has one, and whether any part was sent."""

    def __call__(self, flight: "Flight", error: AccelError | None, *, sent: bool) -> None:
        """Take it; any thread, and it returns at once."""


class Flight:
    """A collective operation from its begin to its end; follows a `GroupReply`, any thread.

    Attributes:
        call: the operation, as `all_reduce`.
        ranks: the names of the devices, by rank.
        arrived_s: when each rank began, after the first one; of those that have.
        began_at: when the first one began, wall seconds; 0 where none has.
        is_over: whether its end was told, which may be before the reply to its sender is done.
    """

    def __init__(
        self,
        world: str,
        epoch: int,
        call: str,
        algorithm: str,
        dtype: str,
        nbytes: int,
        ranks: tuple[str, ...],
        events: EventStream,
        over: Over,
    ) -> None:
        self.world, self.epoch, self.call, self.algorithm = world, epoch, call, algorithm
        self.dtype, self.nbytes, self.ranks = str(dtype), nbytes, ranks  # plain: facts are encoded
        self.group = 0
        self.arrived_s: dict[int, float] = {}
        self.began_at = 0.0
        self.is_over = False
        self._first = 0.0
        self._events, self._over = events, over
        self._lock = threading.Lock()

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks that have not begun."""
        return tuple(rank for rank in range(len(self.ranks)) if rank not in self.arrived_s)

    def began(self, rank: int) -> None:
        """A rank executes its part."""
        with self._lock:
            now = time.monotonic()
            if not self.arrived_s:
                self._first, self.began_at = now, time.time()
            self.arrived_s[rank] = now - self._first

    def over(self, error: AccelError | None, *, sent: bool) -> None:
        """All ranks have done their part, or none will."""
        seconds = time.monotonic() - self._first if self.arrived_s else 0.0
        factor = BUS_FACTORS.get(self.call)
        bandwidth = 0.0
        if error is None and factor is not None and seconds > 0:
            bandwidth = self.nbytes * factor(len(self.ranks)) / seconds / 1e9
        self.is_over = True
        self._over(self, error, sent=sent)
        self._events.publish(
            CollectiveEnded(
                world=self.world,
                epoch=self.epoch,
                group=self.group,
                call=self.call,
                algorithm=self.algorithm,
                dtype=self.dtype,
                nbytes=self.nbytes,
                waited_s=tuple(self.arrived_s.get(one, -1.0) for one in range(len(self.ranks))),
                seconds=seconds,
                bus_gb_s=bandwidth,
                failure="" if error is None else str(error).partition("\n")[0],
                ranks=self.ranks,
            )
        )
