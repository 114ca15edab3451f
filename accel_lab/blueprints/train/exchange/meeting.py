"""Ranks that compute the same, each on a thread, and meet where they exchange something."""

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from accel_lab.blueprints.train.autograd.parallel import on_line
from accel_lab.blueprints.train.faults import Hearing
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.collective import CollectiveAborted
from accel_lab.world.world import World

R = TypeVar("R")
_END = "the end"


class Meeting(Generic[R]):
    """One function on all ranks of a world; an exchange is sent when all have come to it.

    Threads only send; what they send computes on the devices. Rank 0 is the caller's thread.

    Parameters:
        ranks: how many there are.
        hear: called before each exchange.
    """

    def __init__(self, world: World, ranks: int, hear: Hearing) -> None:
        self._world, self._ranks, self._hear = world, ranks, hear
        self._calls = [""] * ranks
        self._given: list[AccelRef | None] = [None] * ranks
        self._made: list[AccelRef] = []
        self._barrier = threading.Barrier(ranks, self._exchange)
        self._results: dict[int, R] = {}
        self._errors: list[BaseException] = []

    def run(self, function: Callable[[int], R]) -> list[R]:
        """Return what a function returns of each rank.

        Raises:
            BaseException: what the first of them has raised.
            InvalidArgument: they do not exchange the same.
        """
        threads = [
            threading.Thread(
                target=contextvars.copy_context().run,
                args=(self._take_part, rank, function),
                name=f"rank {rank}",
                daemon=True,
            )
            for rank in range(1, self._ranks)
        ]
        for thread in threads:
            thread.start()
        self._take_part(0, function)
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return [self._results[rank] for rank in range(self._ranks)]

    def meet(self, rank: int, call: str, x: AccelRef | None) -> AccelRef | None:
        """Wait for all ranks; return what a rank gets."""
        self._calls[rank], self._given[rank] = call, x
        self._barrier.wait()
        return self._made[rank] if x is not None else None

    def _take_part(self, rank: int, function: Callable[[int], R]) -> None:
        try:
            with on_line(Seat(self, rank, self._ranks)):
                self._results[rank] = function(rank)
            self.meet(rank, _END, None)
        except threading.BrokenBarrierError:
            pass  # another rank has failed, and says why
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self._errors.append(error)
            self._barrier.abort()

    def _exchange(self) -> None:
        """Send an exchange; all ranks wait.

        Raises:
            InvalidArgument: ranks have come to different ones.
            CollectiveAborted: the world has shrunk meanwhile.
        """
        if len({*self._calls}) > 1:
            told = ", ".join(f"rank {rank} {call}" for rank, call in enumerate(self._calls))
            raise InvalidArgument(f"the ranks do not compute the same: {told}")
        self._hear()
        given = [one for one in self._given if one is not None]
        if self._calls[0] == _END or not given:
            return
        made = getattr(self._world, self._calls[0])(given).refs
        self._hear.sent.extend(made)
        if len(made) != self._ranks:
            text = f"{self._world.name} has {len(made)} ranks, and had {self._ranks} before"
            raise CollectiveAborted(text)
        self._made = list(made)
        self._given = [None] * self._ranks


class Seat:
    """A rank's place in a meeting: the line that `parallel` layers use."""

    def __init__(self, meeting: Meeting[R], rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self._meet = meeting.meet

    def all_reduce(self, x: AccelRef) -> AccelRef:
        """Return the sum of what all ranks give here."""
        return self._exchanged("all_reduce", x)

    def all_gather(self, x: AccelRef) -> AccelRef:
        """Return what all ranks give here, joined along axis 0."""
        return self._exchanged("all_gather", x)

    def reduce_scatter(self, x: AccelRef) -> AccelRef:
        """Return this rank's part, along axis 0, of the sum of what all ranks give here."""
        return self._exchanged("reduce_scatter", x)

    def _exchanged(self, call: str, x: AccelRef) -> AccelRef:
        made = self._meet(self.rank, call, x)
        assert made is not None
        return made
