"""The host arena as a context process sees it."""

import os

from accel_lab.compute.machine.memfd_mapping import Bytes, Mapping
from accel_lab.errors import InvalidArgument


class ArenaView:
    """Segments mapped from descriptors that came over the wire.

    For one thread, the context's dispatcher. A view keeps its segment's memory mapped, even
    after `detach` and `close`.
    """

    def __init__(self) -> None:
        self._segments: dict[int, Bytes] = {}

    @property
    def segment_ids(self) -> tuple[int, ...]:
        """The attached segments, oldest first."""
        return tuple(self._segments)

    def attach(self, segment_id: int, fd: int, size: int, *, touch: bool = True) -> None:
        """Map a segment and close `fd`, always; a segment that is attached already stays.

        Blocks for its pages (about 10 GB/s) unless `touch` is False, when the first write to
        each page pays for it instead.

        Raises:
            OSError: it cannot be mapped.
        """
        try:
            if segment_id in self._segments:
                return
            mapping = Mapping(fd, size)
            if touch:
                mapping.map_pages()
            self._segments[segment_id] = mapping.bytes()
        finally:
            os.close(fd)

    def detach(self, segment_id: int) -> None:
        """Forget a segment; an unknown one is fine."""
        self._segments.pop(segment_id, None)

    def view(self, segment_id: int, offset: int, nbytes: int) -> Bytes:
        """Return `nbytes` from `offset`, readable and writable, without a copy.

        Raises:
            InvalidArgument: the segment is not attached, or the range is not inside it.
        """
        segment = self._segments.get(segment_id)
        if segment is None:
            raise InvalidArgument(
                f"segment {segment_id} is not attached; attached are {sorted(self._segments)}"
            )
        if offset < 0 or nbytes < 0 or offset + nbytes > segment.nbytes:
            raise InvalidArgument(
                f"{nbytes} bytes at {offset} are not inside segment {segment_id} "
                f"of {segment.nbytes} bytes"
            )
        return segment[offset : offset + nbytes]

    def close(self) -> None:
        """Forget every segment; what no view shows is unmapped."""
        self._segments.clear()
