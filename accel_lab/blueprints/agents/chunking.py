"""Cuts documents into pieces that an embedder takes, and says where each one stands."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count


class Chunk(NamedTuple):
    """A piece of a document: its characters from `start` to `stop`."""

    document: str
    start: int
    stop: int
    text: str


def chunks(document: str, text: str, *, size: int = 800, overlap: int = 100) -> Iterator[Chunk]:
    """Yield the pieces of a document, which cover it; each ends after a space where there is one.

    Parameters:
        document: its name.
        size: how many characters a piece has at most.
        overlap: how many characters the next piece shares with it; fewer than `size`.

    Raises:
        InvalidArgument: an option does not fit.
    """
    require_count(size, "size", 1)
    require_count(overlap, "overlap", 0)
    if overlap >= size:
        raise InvalidArgument(f"overlap is less than size ({size}), and not {overlap}")
    return _chunks(document, text, size, overlap)


def _chunks(document: str, text: str, size: int, overlap: int) -> Iterator[Chunk]:
    start = 0
    while len(text) - start > size:
        stop = _after_space(text, start + overlap + 1, start + size)
        yield Chunk(document, start, stop, text[start:stop])
        start = stop - overlap
    if start < len(text):
        yield Chunk(document, start, len(text), text[start:])


def _after_space(text: str, least: int, most: int) -> int:
    """Return the last place after a space, within both bounds; `most` where there is none."""
    for stop in range(most, least - 1, -1):
        if text[stop - 1].isspace():
            return stop
    return most
