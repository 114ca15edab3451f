"""The arena's segments in a context, as they arrive."""

import contextlib
import threading
from typing import Any

from accel_lab.compute.arena.context_view import ArenaView
from accel_lab.compute.execution.backend import Copies
from accel_lab.compute.wire.side_channel import Segment
from accel_lab.errors import LibraryError

SEGMENT_WAIT_S = 30.0


class SegmentBytes:
    """The arena's segments as they arrive; the dispatcher waits for one that is on its way."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._view = ArenaView()
        self._known: set[int] = set()
        self._failed: dict[int, BaseException] = {}
        self._arrival = threading.Condition()

    def attach(self, segment: Segment, fd: int) -> None:
        """Map a segment and page-lock it; control thread. What cannot be mapped fails when used."""
        try:
            self._view.attach(segment.id, fd, segment.size)
            self._copies.map_segment(self._view.view(segment.id, 0, segment.size))
        except Exception as error:  # noqa: BLE001 - this thread also beats, and must go on
            self._failed[segment.id] = error
        with self._arrival:
            self._known.add(segment.id)
            self._arrival.notify_all()

    def detach(self, id_: int, size: int) -> None:
        """Unmap a segment; control thread."""
        with self._arrival:
            self._known.discard(id_)
        if self._failed.pop(id_, None) is not None:
            with contextlib.suppress(Exception):  # perhaps not even attached
                self._view.detach(id_)
            return
        self._copies.unmap_segment(self._view.view(id_, 0, size))
        self._view.detach(id_)

    def view(self, segment_id: int, offset: int, nbytes: int) -> Any:
        """Return bytes of a segment; dispatcher thread.

        Raises:
            LibraryError: it cannot be mapped here, or has not come.
        """
        if segment_id not in self._known:
            with self._arrival:
                if not self._arrival.wait_for(lambda: segment_id in self._known, SEGMENT_WAIT_S):
                    raise _unmapped(segment_id, f"it has not come within {SEGMENT_WAIT_S:g} s")
        if self._failed and segment_id in self._failed:
            raise _unmapped(segment_id, repr(self._failed[segment_id]))
        return self._view.view(segment_id, offset, nbytes)


def _unmapped(segment_id: int, why: str) -> LibraryError:
    text = f"arena segment {segment_id} cannot be mapped into the context: {why}"
    return LibraryError(text, library="arena", name="SEGMENT")
