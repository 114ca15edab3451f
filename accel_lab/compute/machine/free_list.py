"""The free ranges of one segment: first fit, neighbours joined at once."""

from bisect import bisect_left


class FreeList:
    """Sorted, disjoint, never adjacent free ranges within `size` bytes; not thread-safe."""

    __slots__ = ("_lengths", "_starts", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._starts = [0]
        self._lengths = [size]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is taken."""
        return self._lengths == [self.size]

    def take(self, nbytes: int) -> int | None:
        """Take `nbytes` (> 0) from the lowest range that has them; None when none has."""
        for index, length in enumerate(self._lengths):
            if length < nbytes:
                continue
            start = self._starts[index]
            if length == nbytes:
                del self._starts[index], self._lengths[index]
            else:
                self._starts[index] = start + nbytes
                self._lengths[index] = length - nbytes
            return start
        return None

    def give(self, start: int, nbytes: int) -> None:
        """Return a range that `take` gave, joining it with its free neighbours.

        Raises:
            ValueError: part of the range is free already; nothing changed.
        """
        starts, lengths = self._starts, self._lengths
        after = bisect_left(starts, start)
        end = start + nbytes
        overlaps_before = after > 0 and starts[after - 1] + lengths[after - 1] > start
        overlaps_after = after < len(starts) and starts[after] < end
        if overlaps_before or overlaps_after or start < 0 or end > self.size:
            raise ValueError(f"range {start}..{end} is not taken")
        if after < len(starts) and starts[after] == end:
            nbytes += lengths[after]
            del starts[after], lengths[after]
        if after > 0 and starts[after - 1] + lengths[after - 1] == start:
            lengths[after - 1] += nbytes
        else:
            starts.insert(after, start)
            lengths.insert(after, nbytes)

    def ranges(self) -> list[tuple[int, int]]:
        """Return the free ranges as (start, nbytes), lowest first."""
        return list(zip(self._starts, self._lengths, strict=True))
