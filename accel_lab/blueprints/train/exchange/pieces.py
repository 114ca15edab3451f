"""Arrays cut, in C order, into as many equal pieces as there are ranks.

The last pieces are filled up with zeros. A bucket of several arrays is a matrix with a row for each
rank, so that one operation moves each rank's pieces of all of them.
"""

import math
from collections.abc import Sequence

import numpy as np

from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array
from accel_lab.world.sharded import Sharded
from accel_lab.world.world import World


def extent(size: int, ranks: int) -> int:
    """Return how many elements a piece has; it has one at least."""
    return max(1, -(-size // ranks))


def piece(ref: AccelRef, rank: int, ranks: int) -> AccelRef:
    """Return a rank's piece of an array that it has."""
    size = math.prod(ref.shape)
    long = extent(size, ranks)
    start, stop = min(rank * long, size), min((rank + 1) * long, size)
    return _filled(ref.reshape(-1)[start:stop], long)


def filled(whole: Array, ranks: int) -> Array:
    """Return all pieces of an array, one behind the other."""
    flat = np.ascontiguousarray(whole).reshape(-1)
    return np.pad(flat, (0, extent(flat.size, ranks) * ranks - flat.size))


def _filled(flat: AccelRef, size: int) -> AccelRef:
    missing = size - flat.size
    if not missing:
        return flat
    zeros = array.zeros(flat.device, (missing,), flat.dtype)
    return array.concatenate([flat, zeros]) if flat.size else zeros


class Scatters:
    """A bucket whose sums are scattered: each rank gets those of its own pieces."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks

    def join(self, refs: Sequence[AccelRef]) -> AccelRef:
        """Return a matrix with a row for each rank."""
        return array.concatenate([self._rows(ref) for ref in refs], 1)

    def send(self, world: World, joined: Sharded) -> Sharded:
        """Sum, and keep a row."""
        return world.reduce_scatter(joined)

    def part(self, whole: AccelRef, like: Sequence[AccelRef]) -> list[AccelRef]:
        """Return the rank's piece of each."""
        made, start = [], 0
        for ref in like:
            stop = start + extent(math.prod(ref.shape), self._ranks)
            made.append(whole[0, start:stop])
            start = stop
        return made

    def _rows(self, ref: AccelRef) -> AccelRef:
        size = math.prod(ref.shape)
        long = extent(size, self._ranks)
        return _filled(ref.reshape(-1), long * self._ranks).reshape((self._ranks, long))


class Gathers:
    """A bucket of pieces that all ranks get, as matrices with a row of each rank."""

    def join(self, refs: Sequence[AccelRef]) -> AccelRef:
        """Return the rank's row."""
        return array.concatenate(refs).reshape((1, -1))

    def send(self, world: World, joined: Sharded) -> Sharded:
        """Join the rows of all ranks."""
        return world.all_gather(joined)

    def part(self, whole: AccelRef, like: Sequence[AccelRef]) -> list[AccelRef]:
        """Return all pieces of each."""
        made, start = [], 0
        for ref in like:
            stop = start + ref.size
            made.append(whole[:, start:stop])
            start = stop
        return made
