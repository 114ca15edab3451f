"""A node's copy of the notebook's arena: the same segments, filled with what messages name."""

from contextlib import suppress

from accel_lab.compute.arena.segment import Segment
from accel_lab.compute.cluster.entries import Fill, Region


class Mirror:
    """The segments that contexts of this machine share; for one thread.

    They are anonymous files, which contexts get as they get those of an arena.
    """

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}

    def open(self, id_: int, size: int) -> int:
        """Return the descriptor of a segment, made when it is new; -1 where there is no memory.

        A context that gets none fails what uses the segment, and says why.
        """
        if id_ not in self._segments:
            try:
                self._segments[id_] = Segment(id_, size, is_shared=False)
            except OSError:
                return -1
        return self._segments[id_].fd

    def fill(self, fill: Fill) -> None:
        """Write bytes that came from the notebook; nothing happens where they have no place."""
        segment = self._segments.get(fill.segment)
        if segment is not None:
            segment.bytes(fill.start, fill.data.nbytes)[:] = fill.data

    def read(self, region: Region) -> Fill | None:
        """Return the bytes of a region as they are, not copied; None where they have no place."""
        segment = self._segments.get(region.segment)
        if segment is None:
            return None
        return Fill(region.segment, region.start, segment.bytes(region.start, region.nbytes))

    def drop(self, id_: int) -> None:
        """Forget a segment; an unknown one is fine."""
        with suppress(KeyError):
            self._segments.pop(id_).close()

    def clear(self) -> None:
        """Forget all."""
        for id_ in list(self._segments):
            self.drop(id_)
