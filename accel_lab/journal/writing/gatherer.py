"""Gather what the devices of one session have been sent into groups."""

from collections import deque
from collections.abc import Iterator

import msgspec

from accel_lab.compute.lineage import markers
from accel_lab.compute.lineage.markers import encode_marker, marker_of
from accel_lab.compute.lineage.recorder import Follow
from accel_lab.journal.stores.group import Group
from accel_lab.journal.writing.grants import Grants

GROUP_BYTES = 256 << 10
GROUP_PARTS = 2048
_FIRST_TAG = 0xE0
"""The second byte of a part from which on it is a marker's tag, a small negative number."""

_decode = msgspec.msgpack.Decoder(list[object]).decode


class Place:
    """Where the record of one device has got to.

    Attributes:
        drained: what the recorder has handed over, one list a drain.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.drained: deque[list[bytes]] = deque()
        self.generation = 1
        self.cell: int | None = None


class Gatherer:
    """Follows recorders, and makes groups of what they hand over.

    Parameters:
        session: what the groups are of.
        grants: says which contents are kept.
    """

    def __init__(self, session: str, grants: Grants) -> None:
        self.session = session
        self._grants = grants
        self._places: list[Place] = []
        self._position = 0

    def follow(self, device: str) -> Follow:
        """Return what a device's recorder has to call; it only appends to a list."""
        place = Place(device)
        self._places.append(place)
        return place.drained.append

    def gather(self, at: float) -> Iterator[Group]:
        """Yield groups of what has come, one a device unless they would be large."""
        for place in self._places:
            parts: list[bytes] = []
            while place.drained:
                parts += place.drained.popleft()
            for some in _portions(parts):
                yield self._group(place, some, at)

    def facts(self, data: bytes, at: float) -> Group:
        """Return a group of facts, one msgpack map, that stands behind everything gathered."""
        self._position += 1
        return Group(0, self.session, "", at, 1, data, self._position, 1)

    def _group(self, place: Place, parts: list[bytes], at: float) -> Group:
        self._position += 1
        generation, cell = place.generation, place.cell
        keys: dict[str, None] = {}
        senders = 0
        marked = [i for i, part in enumerate(parts) if part[1] >= _FIRST_TAG]
        for index in marked:
            marker = marker_of(_decode(parts[index]))
            if isinstance(marker, markers.SentBy):
                senders += 1
                place.cell = marker.cell
            elif isinstance(marker, markers.ContextBegan):
                place.generation = marker.generation
            elif isinstance(marker, markers.ContextEnded):
                place.generation = marker.generation + 1
            elif isinstance(marker, markers.Content | markers.Result | markers.Checkpoint):
                kept = self._within_budget(marker)
                if kept is not marker:
                    parts[index] = encode_marker(kept)
                if kept.key:
                    keys[kept.key] = None
        return Group(
            0,
            self.session,
            place.device,
            at,
            len(parts),
            b"".join(parts),
            self._position,
            len(parts) - senders,
            generation,
            cell,
            tuple(keys),
            senders == len(marked),
        )

    def _within_budget(
        self, marker: markers.Content | markers.Result | markers.Checkpoint
    ) -> markers.Content | markers.Result | markers.Checkpoint:
        """Say in the record itself that bytes are not kept, so that nobody expects them."""
        why = self._grants.refusal(marker.key) if marker.key else ""
        if not why:
            return marker
        if isinstance(marker, markers.Content):
            return markers.Content(marker.seq, "", why)
        return msgspec.structs.replace(marker, key="")


def _portions(parts: list[bytes]) -> Iterator[list[bytes]]:
    """Cut parts so that joining some of them is short."""
    for start in range(0, len(parts), GROUP_PARTS):
        some = parts[start : start + GROUP_PARTS]
        if sum(map(len, some)) <= GROUP_BYTES:
            yield some
            continue
        portion: list[bytes] = []
        size = 0
        for part in some:
            if portion and size + len(part) > GROUP_BYTES:
                yield portion
                portion, size = [], 0
            portion.append(part)
            size += len(part)
        yield portion
