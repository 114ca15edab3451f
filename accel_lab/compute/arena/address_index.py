"""Where memory lies: what has an address, found without looking at all that there is."""

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class AddressIndex(Generic[T]):
    """Ranges of memory and what stands for them; they may overlap.

    A range is found in steps of its own size, rounded up, of which it touches two at most. So to
    enter one and to find one takes as long among a million as among a few.
    """

    def __init__(self) -> None:
        self._steps: dict[int, dict[int, list[tuple[int, int, T]]]] = {}

    def add(self, start: int, nbytes: int, item: T) -> None:
        """Enter a range; an empty one is nowhere."""
        if nbytes <= 0:
            return
        shift, end = (nbytes - 1).bit_length(), start + nbytes
        steps = self._steps.setdefault(shift, {})
        for step in {start >> shift, (end - 1) >> shift}:
            steps.setdefault(step, []).append((start, end, item))

    def at(self, address: int) -> Iterator[T]:
        """Yield what has this address, of each size in the order of entering."""
        for shift, steps in self._steps.items():
            for start, end, item in steps.get(address >> shift, ()):
                if start <= address < end:
                    yield item

    def has(self, address: int) -> bool:
        """Whether anything has this address."""
        return any(True for _ in self.at(address))
