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

    @property
    def stored(self) -> int:
        """How many tokens are there."""
        return self.length - self.first


class Places(NamedTuple):
    """Where tokens go.

    Attributes:
        copied: pages and what is to be a copy of them, before anything is written.
        pages, offsets: the place of each token, (sequences, tokens).
    """

    copied: list[tuple[int, int]]
    pages: Any
    offsets: Any


class PageTable:
    """Hands pages out, counts who has them, and takes them back."""

    def __init__(self, pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.count = pages
        self.sequences: dict[int, Sequence] = {}
        self._free = list(range(pages - 1, -1, -1))
        self._used_by: Counter[int] = Counter()

    def append(self, numbers: tuple[int, ...], tokens: int) -> Places:
        """Return the places of tokens more for each sequence.

        Raises:
            CacheFull: there are not so many pages; nothing has changed.
        """
        self._require_room(numbers, tokens)
        copied: list[tuple[int, int]] = []
        at = np.empty((len(numbers), tokens), np.int64)
        offsets = np.empty_like(at)
        for row, number in enumerate(numbers):
            one = self.sequences.setdefault(number, Sequence())
            if tokens and self._is_shared_end(one):
                copied.append((one.pages[-1], page := self._take()))
                self._leave(one.pages[-1:])
                one.pages[-1] = page
            one.pages += [self._take() for _ in range(self._lacking(one, tokens))]
            places = np.arange(one.stored, one.stored + tokens)
            at[row] = np.asarray(one.pages, np.int64)[places // self.page_size]
            offsets[row] = places % self.page_size
            one.length += tokens
        return Places(copied, at, offsets)

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

    def _require_room(self, numbers: tuple[int, ...], tokens: int) -> None:
        needed, left = 0, Counter[int]()
        for number in numbers:
            one = self.sequences.get(number, Sequence())
            needed += self._lacking(one, tokens)
            if tokens and self._is_shared_end(one, left):
                left[one.pages[-1]] += 1
                needed += 1
        if needed > (free := len(self._free)):
            text = f"CacheAppend: {needed} pages are needed, and of {self.count} are {free} free"
            raise CacheFull(text, needed=needed, free=free)

    def _lacking(self, one: Sequence, tokens: int) -> int:
        return -(-(one.stored + tokens) // self.page_size) - len(one.pages)

    def _is_shared_end(self, one: Sequence, left: Counter[int] | None = None) -> bool:
        """Whether the next token goes to a page that another sequence has, too."""
        if not one.stored % self.page_size:
            return False
        page = one.pages[-1]
        return self._used_by[page] - (left[page] if left else 0) > 1

    def _take(self) -> int:
        page = self._free.pop()
        self._used_by[page] = 1
        return page

    def _leave(self, pages: list[int]) -> None:
        for page in pages:
            self._used_by[page] -= 1
            if not self._used_by[page]:
                del self._used_by[page]
                self._free.append(page)
