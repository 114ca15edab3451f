"""Gradients of all ranks, joined to vectors and summed."""

import math
from collections.abc import Sequence

from accel_lab.blueprints.train.faults import Hearing
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array
from accel_lab.libraries.collective import CollectiveAborted
from accel_lab.world.world import World


class Buckets:
    """Sums gradients over the ranks of a world, many in one operation.

    Parameters:
        most_bytes: a bucket is sent when it has as many.
        hear: called before each is sent, which waits if the world has to heal.
    """

    def __init__(self, world: World, most_bytes: int, hear: Hearing) -> None:
        self._world, self._most, self._hear = world, most_bytes, hear
        self._places: list[int] = []
        self._rows: list[Sequence[AccelRef]] = []
        self._bytes = 0
        self._done: list[list[tuple[int, AccelRef]]] = [[] for _ in world.devices]

    def add(self, place: int, row: Sequence[AccelRef]) -> None:
        """Add a gradient, one of each rank."""
        if self._rows and self._rows[0][0].dtype != row[0].dtype:
            self._send()
        self._places.append(place)
        self._rows.append(row)
        self._bytes += row[0].nbytes
        if self._bytes >= self._most:
            self._send()

    def done(self) -> list[list[tuple[int, AccelRef]]]:
        """Return each rank's sums, with their places."""
        if self._rows:
            self._send()
        return self._done

    def _send(self) -> None:
        """Sum what there is over all ranks, and cut it into gradients again.

        Raises:
            CollectiveAborted: the world has shrunk meanwhile.
        """
        columns = list(zip(*self._rows, strict=True))
        flat = self._world.own(
            [array.concatenate([ref.reshape(-1) for ref in column]) for column in columns]
        )
        self._hear()
        summed = self._world.all_reduce(flat, out=flat)
        self._hear.sent.extend(summed.refs)
        if len(summed.refs) != len(columns):
            text = f"{self._world.name} has {len(summed.refs)} ranks, and had {len(columns)} before"
            raise CollectiveAborted(text)
        for rank, (whole, column) in enumerate(zip(summed.refs, columns, strict=True)):
            start = 0
            for place, ref in zip(self._places, column, strict=True):
                stop = start + math.prod(ref.shape)
                self._done[rank].append((place, whole[start:stop].reshape(ref.shape)))
                start = stop
        self._places, self._rows, self._bytes = [], [], 0
