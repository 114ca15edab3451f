"""Which pages the sequences of a cache have: numbers alone, no arrays."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from accel_lab.errors import InvalidArgument
from accel_lab.libraries.attention.pages import CacheFull


@dataclass
class Sequence:
    """The tokens of one sequence.

    Attributes:
        length: how many it has had.
        pages: those that are stored, in their order.
        first: the token with which these begin; those before are evicted.
    """

    length: int = 0
    pages: list[int] = field(default_factory=list)
    first: int = 0
    _row: tuple[list[int], Any] = field(default=([], None), repr=False, compare=False)

    @property
    def stored(self) -> int:
        """How many tokens are there."""
        return self.length - self.first

    @property
    def row(self) -> Any:
        """The pages as an array; made anew when there are others, which most tokens do not need."""
        if self._row[0] is not self.pages:
            self._row = self.pages, np.array(self.pages, np.int64)
        return self._row[1]


def rows_of(sequences: list[Sequence], pages: int) -> Any:
    """Return the pages of sequences, a row for each; behind its last page there are zeros."""
    table = np.zeros((len(sequences), pages), np.int64)
    for row, one in zip(table, sequences, strict=True):
        row[: len(one.pages)] = one.row
    return table


class Places(NamedTuple):
    """Where tokens go.

    Attributes:
        copied: pages and what is to be a copy of them, before anything is written.
        pages, offsets: the place of each token, (sequences, tokens).
        after: the pages that each sequence has then.
        taken: how many of them were free.
    """

    copied: list[tuple[int, int]]
    pages: Any
    offsets: Any
    after: dict[int, list[int]]
    taken: int


class PageTable:
    """Hands pages out, counts who has them, and takes them back."""

    def __init__(self, pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.count = pages
        self.sequences: dict[int, Sequence] = {}
        self._free = list(range(pages - 1, -1, -1))
        self._used_by: Counter[int] = Counter()

    def places(self, numbers: tuple[int, ...], tokens: int) -> Places:
        """Return the places of tokens more for each sequence; with `append` they count.

        Raises:
            CacheFull: there are not so many pages.
        """
        copied: list[tuple[int, int]] = []
        after: dict[int, list[int]] = {}
        at, offsets = np.empty((2, len(numbers), tokens), np.int64)
        free, needed, left = len(self._free), 0, Counter[int]()

        def take() -> int:
            nonlocal needed
            needed += 1
            return self._free[-needed] if needed <= free else -1

        for row, number in enumerate(numbers):
            one = self.sequences.get(number, Sequence())
            pages = after[number] = [*one.pages]
            # The next token may go to a page that another sequence has, too.
            if tokens and one.stored % self.page_size:
                page = pages[-1]
                if self._used_by[page] - left[page] > 1:
                    left[page] += 1
                    pages[-1] = take()
                    copied.append((page, pages[-1]))
            lacking = -(-(one.stored + tokens) // self.page_size) - len(pages)
            pages += [take() for _ in range(lacking)]
            if tokens == 1:  # most often, and then arrays are slow
                at[row, 0], offsets[row, 0] = pages[-1], one.stored % self.page_size
                continue
            places = np.arange(one.stored, one.stored + tokens)
            first = one.stored // self.page_size
            at[row] = np.array(pages[first:], np.int64)[places // self.page_size - first]
            offsets[row] = places % self.page_size
        if needed > free:
            text = f"CacheAppend: {needed} pages are needed, and of {self.count} are {free} free"
            raise CacheFull(text, needed=needed, free=free)
        return Places(copied, at, offsets, after, needed)

    def append(self, places: Places) -> None:
        """Let tokens count that have been written to their places."""
        del self._free[len(self._free) - places.taken :]
        for number, pages in places.after.items():
            one = self.sequences.setdefault(number, Sequence())
            kept = len(one.pages)
            if kept and one.pages[-1] != pages[kept - 1]:
                self._leave(one.pages[-1:])
                kept -= 1
            self._used_by.update(pages[kept:])
            if one.pages != pages:
                one.pages = pages
            one.length += places.pages.shape[1]

    def fork(self, of: int, to: tuple[int, ...]) -> None:
        """Give other sequences all that one has.

        Raises:
            InvalidArgument: it is not there, or one of the others is.
        """
        one = self.sequence(of)
        if there := [number for number in to if number in self.sequences]:
            raise InvalidArgument(f"CacheFork: the cache has sequences {there} already")
        for number in to:
            self.sequences[number] = Sequence(one.length, [*one.pages], one.first)
            self._used_by.update(one.pages)

    def evict(self, numbers: tuple[int, ...], keep: int) -> None:
        """Free the pages of sequences, but for those of the last tokens.

        Raises:
            InvalidArgument: one is not there; nothing has changed.
        """
        found = [self.sequence(number) for number in numbers]
        for number, one in zip(numbers, found, strict=True):
            dropped = max(0, one.stored - keep) // self.page_size if keep else len(one.pages)
            self._leave(one.pages[:dropped])
            if keep:
                one.pages = one.pages[dropped:]
                one.first += dropped * self.page_size
            else:
                del self.sequences[number]

    def sequence(self, number: int) -> Sequence:
        """Return a sequence.

        Raises:
            InvalidArgument: it is not there.
        """
        if number not in self.sequences:
            raise InvalidArgument(
                f"the cache has no sequence {number}, but {sorted(self.sequences) or 'none'}"
            )
        return self.sequences[number]

    def statistics(self) -> list[int]:
        """Return what `CacheStatistics` counts."""
        shared = sum(count > 1 for count in self._used_by.values())
        tokens = sum(one.stored for one in self.sequences.values())
        return [self.count, len(self._free), shared, len(self.sequences), tokens]

    def encoded(self) -> Any:
        """Return all of it as one array of integers."""
        rows = [
            (number, one.length, one.first, len(one.pages), *one.pages)
            for number, one in self.sequences.items()
        ]
        return np.array([self.count, self.page_size, *(n for row in rows for n in row)], np.int64)

    @classmethod
    def decoded(cls, encoded: Any) -> "PageTable":
        """Return what was encoded."""
        numbers = iter(encoded.tolist())
        made = cls(next(numbers), next(numbers))
        for number in numbers:
            length, first, count = next(numbers), next(numbers), next(numbers)
            pages = [next(numbers) for _ in range(count)]
            made.sequences[number] = Sequence(length, pages, first)
            made._used_by.update(pages)
        made._free = [page for page in made._free if not made._used_by[page]]
        return made

    def _leave(self, pages: list[int]) -> None:
        for page in pages:
            self._used_by[page] -= 1
            if not self._used_by[page]:
                del self._used_by[page]
                self._free.append(page)
