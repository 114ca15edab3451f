"""What a store without transactions has to do, for a journal to be kept in it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

Cell: TypeAlias = tuple[str, bytes]
"""A key and what stands there."""

PIECE_BYTES = 256 << 10
"""The most that stands in a cell; DynamoDB takes 400 KB with its names."""
PAGE = 64
SERIAL = ("head", "commits", "contents")
"""Partitions, by the last part of their names, that only `put_new` and `delete_if` change."""


class Cells(Protocol):
    """Partitions of cells, each in the order of its keys' bytes; any thread.

    A read sees every write that was answered before. Every method may block, and raises:
        JournalUnavailable: it cannot be reached, or has no room; calling again later may do.
    """

    name: str
    """What it is called in events and tables; without a password."""

    def put(self, partition: str, cells: Mapping[str, bytes]) -> None:
        """Write cells, in any order and over what is there; of a failure some may be written."""

    def put_new(self, partition: str, key: str, value: bytes) -> bool:
        """Write a cell unless there is one, at once; says whether it did."""

    def get(self, partition: str, key: str) -> bytes | None:
        """Return what stands in a cell, None where there is none."""

    def range(self, partition: str, above: str, limit: int) -> list[Cell]:
        """Return the first cells with keys above one, at most so many."""

    def last(self, partition: str, most: str) -> Cell | None:
        """Return the last cell with a key up to this."""

    def keys(self, partition: str) -> list[str]:
        """Return all keys of a partition."""

    def delete(self, partition: str, keys: Iterable[str]) -> None:
        """Take cells away, if they are there."""

    def delete_if(self, partition: str, key: str, value: bytes) -> bool:
        """Take a cell away if this stands there, at once; says whether it did."""

    def close(self) -> None:
        """Let connections go; a later call opens them again."""


def every(cells: Cells, partition: str, above: str = "") -> Iterator[Cell]:
    """Yield all cells of a partition with keys above one, a page at a time."""
    while page := cells.range(partition, above, PAGE):
        yield from page
        above = page[-1][0]


def pieces_of(name: str, data: bytes) -> dict[str, bytes]:
    """Return bytes in cells of their own, whose keys begin with a name."""
    starts = range(0, max(len(data), 1), PIECE_BYTES)
    return {
        piece_key(name, piece): data[start : start + PIECE_BYTES]
        for piece, start in enumerate(starts)
    }


def piece_key(name: str, piece: int) -> str:
    """Return the key of a piece."""
    return f"{name}.{piece:06}"


def piece_keys(name: str, nbytes: int) -> list[str]:
    """Return the keys of the pieces of so many bytes."""
    return [piece_key(name, piece) for piece in range(max(-(-nbytes // PIECE_BYTES), 1))]
