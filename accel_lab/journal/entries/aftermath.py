"""The outcomes of one device's messages, gathered while its journal is read."""

from typing import NamedTuple

from accel_lab.compute.lineage import markers
from accel_lab.compute.lineage.markers import Marker


class Contained(NamedTuple):
    """What the record says of the bytes that a message took from the arena."""

    key: str
    why: str


class Aftermath:
    """What became of the requests of one device of one session, as far as it has been read.

    Attributes:
        failed: the failures by request.
        lost: the generation with which a request was lost, by request.
        causes: why a generation was lost.
        contents: the kept bytes by request.
        results: the digests by request, and by buffer where it has several results, else by 0.
        arrays: the buffers inside an answer, by request.
        kernels: the names of compiled kernels, by the number of the token.
    """

    def __init__(self) -> None:
        self.failed: dict[int, markers.Failed] = {}
        self.lost: dict[int, int] = {}
        self.causes: dict[int, str] = {}
        self.contents: dict[int, Contained] = {}
        self.results: dict[int, dict[int, markers.Result]] = {}
        self.arrays: dict[int, list[int]] = {}
        self.kernels: dict[int, str] = {}

    def take(self, marker: Marker) -> None:
        """Note what a marker says."""
        if isinstance(marker, markers.Failed):
            self.failed[marker.seq] = marker
        elif isinstance(marker, markers.ContextEnded):
            self.lost.update(dict.fromkeys(marker.in_flight, marker.generation))
        elif isinstance(marker, markers.Rebuilt):
            self.lost.clear()  # what was in flight was run again, or is marked as failed
        elif isinstance(marker, markers.Explained):
            self.causes[marker.generation] = marker.cause
        elif isinstance(marker, markers.Content):
            self.contents[marker.seq] = Contained(marker.key, marker.why)
        elif isinstance(marker, markers.Result):
            self.results.setdefault(marker.seq, {})[marker.id] = marker
        elif isinstance(marker, markers.Arrays):
            self.arrays[marker.seq] = marker.ids

    def forget(self, seq: int) -> None:
        """Forget what is kept of each request: not failures and losses, which are few."""
        self.contents.pop(seq, None)
        self.results.pop(seq, None)
        self.arrays.pop(seq, None)
