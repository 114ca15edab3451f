"""What the arena hands out: a block, and its place."""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from accel_lab.compute.arena.release_queue import ReleaseQueue
from accel_lab.compute.machine.memfd_mapping import Bytes

_NOTHING: Bytes = np.empty(0, np.uint8)


class Location(NamedTuple):
    """Where bytes lie, in words that another process understands.

    Attributes:
        segment_id: the segment.
        offset: bytes from its start.
    """

    segment_id: int
    offset: int


class Block:
    """`nbytes` of arena memory, 256-byte aligned, until `release`.

    Attributes:
        segment_id: the segment that it lies in.
        offset: bytes from the segment's start.
        nbytes: as asked for; the arena may have set aside a little more.
        view: the memory as uint8, until `release`; then empty, so that a block which is kept
            keeps nothing mapped. Its memory is reused, never unmapped under a view.
    """

    __slots__ = ("_returns", "nbytes", "offset", "segment_id", "serial", "view")

    def __init__(
        self, location: Location, view: Bytes, *, serial: int, returns: ReleaseQueue
    ) -> None:
        self.segment_id, self.offset = location
        self.nbytes = view.nbytes
        self.view = view
        self.serial = serial
        self._returns: ReleaseQueue | None = returns

    def release(self, *, after: Hashable | None = None) -> None:
        """Give the memory back; the second call and later ones do nothing.

        Never blocks, takes no lock: any thread, any finalizer. With `after`, the token of a
        context process that may still write here, as `(device, generation)`, the memory is
        reused only after `Arena.reaped(after)`.
        """
        returns = self.disown()
        if returns is not None:
            returns.put(self.serial, after)

    def disown(self) -> ReleaseQueue | None:
        """Make `release` do nothing from now on; return where the block must go instead."""
        returns, self._returns = self._returns, None
        self.view = _NOTHING
        return returns
