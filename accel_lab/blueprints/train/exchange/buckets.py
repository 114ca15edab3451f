"""Gradients of all ranks, joined to vectors and summed."""

import math
from collections.abc import Sequence
from typing import Protocol

from accel_lab.blueprints.train.faults import Hearing
from accel_lab.blueprints.train.optimizers.optimizer import Buffers
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array
from accel_lab.libraries.collective import CollectiveAborted
from accel_lab.world.sharded import Sharded
from accel_lab.world.world import World

BUCKET_BYTES = 25 << 20
"""As PyTorch's DistributedDataParallel has it."""


class Way(Protocol):
    """How a bucket goes through a world, and what each rank has of it then."""

    def join(self, refs: Sequence[AccelRef]) -> AccelRef:
        """Return what a rank gives, of all that it has in a bucket."""

    def send(self, world: World, joined: Sharded) -> Sharded:
        """Send what all ranks give."""

    def part(self, whole: AccelRef, like: Sequence[AccelRef]) -> list[AccelRef]:
        """Return what a rank has got, cut as the bucket was filled."""


class Sums:
    """All ranks get all sums."""

    def join(self, refs: Sequence[AccelRef]) -> AccelRef:
        """Return all in one vector."""
        return array.concatenate([ref.reshape(-1) for ref in refs])

    def send(self, world: World, joined: Sharded) -> Sharded:
        """Sum in place."""
        return world.all_reduce(joined, out=joined)

    def part(self, whole: AccelRef, like: Sequence[AccelRef]) -> list[AccelRef]:
        """Return each in its own shape."""
        made, start = [], 0
        for ref in like:
            stop = start + math.prod(ref.shape)
            made.append(whole[start:stop].reshape(ref.shape))
            start = stop
        return made


class Buckets:
    """Sends arrays of all ranks through a world, many in one operation.

    Parameters:
        most_bytes: a bucket is sent when it has as many.
        hear: called before each is sent, which waits if the world has to heal.
        way: how it is sent; sums for all, when not given.
    """

    def __init__(
        self, world: World, most_bytes: int, hear: Hearing, way: Way | None = None
    ) -> None:
        self._world, self._most, self._hear = world, most_bytes, hear
        self._way: Way = way or Sums()
        self._names: list[str] = []
        self._rows: list[Sequence[AccelRef]] = []
        self._bytes = 0
        self._done: list[Buffers] = [{} for _ in world.devices]

    def add(self, name: str, row: Sequence[AccelRef]) -> None:
        """Add an array, one of each rank."""
        if self._rows and self._rows[0][0].dtype != row[0].dtype:
            self._send()
        self._names.append(name)
        self._rows.append(row)
        self._bytes += row[0].nbytes
        if self._bytes >= self._most:
            self._send()

    def done(self) -> list[Buffers]:
        """Return what each rank has got, by name."""
        if self._rows:
            self._send()
        return self._done

    def _send(self) -> None:
        """Send what there is, and cut what comes of it.

        Raises:
            CollectiveAborted: the world has shrunk meanwhile.
        """
        columns = list(zip(*self._rows, strict=True))
        joined = self._world.own([self._way.join(column) for column in columns])
        self._hear()
        made = self._way.send(self._world, joined)
        self._hear()
        self._hear.sent.extend(made.refs)
        if len(made.refs) != len(columns):
            text = f"{self._world.name} has {len(made.refs)} ranks, and had {len(columns)} before"
            raise CollectiveAborted(text)
        for done, whole, column in zip(self._done, made.refs, columns, strict=True):
            done.update(zip(self._names, self._way.part(whole, column), strict=True))
        self._names, self._rows, self._bytes = [], [], 0
