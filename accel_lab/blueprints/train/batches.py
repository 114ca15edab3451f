"""Batches of arrays, of which each step has its own, however often it is done again."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.errors import InvalidArgument


class Batches:
    """Rows of arrays, shuffled in each epoch; a step's depend on nothing but its number.

    `Batches(images, labels, size=64)` returns both arrays of a step when it is called with its
    number, from 0. The rows of an epoch that do not fill a batch are left out.

    Attributes:
        size: how many rows a batch has.
        an_epoch: how many batches an epoch has.
    """

    def __init__(
        self, *arrays: npt.ArrayLike, size: int, seed: int = 0, shuffle: bool = True
    ) -> None:
        self._arrays = [np.asarray(one) for one in arrays]
        counts = sorted({len(one) if one.ndim else 0 for one in self._arrays})
        if len(counts) != 1:
            raise InvalidArgument(f"Batches: arrays have {counts} rows; all are to have as many")
        if type(size) is not int or not 1 <= size <= counts[0]:
            text = f"size is {size!r}, and there are {counts[0]} rows"
            raise InvalidArgument(f"Batches: {text}; it is an integer from 1 to as many")
        self.size = size
        self.an_epoch = counts[0] // size
        self._rows, self._seed, self._shuffle = counts[0], seed, shuffle
        self._order: tuple[int, npt.NDArray[np.int64]] = -1, np.arange(self._rows)

    def __call__(self, step: int) -> tuple[npt.NDArray[Any], ...]:
        """Return the rows of a step of each array."""
        epoch, at = divmod(step, self.an_epoch)
        known, order = self._order  # of one look: several threads may ask
        if self._shuffle and known != epoch:
            order = np.random.default_rng([self._seed, epoch]).permutation(self._rows)
            self._order = epoch, order
        rows = order[at * self.size : (at + 1) * self.size]
        return tuple([one[rows] for one in self._arrays])


def shared_out(
    batch: Sequence[Any], ranks: int, what: str = "ranks"
) -> list[tuple[Sequence[Any], float]]:
    """Return each rank's rows of a batch, and its share of all.

    Parameters:
        what: what the ranks are called.

    Raises:
        InvalidArgument: there are fewer rows than ranks, or arrays of different lengths.
    """
    if ranks == 1:
        return [(batch, 1.0)]
    counts = {len(one) for one in batch if _has_rows(one)}
    if len(counts) != 1 or min(counts) < ranks:
        text = f"its arrays have {sorted(counts)} rows, and there are {ranks} {what}"
        raise InvalidArgument(f"a batch cannot be shared out: {text}")
    (count,) = counts
    pieces = [np.array_split(one, ranks) if _has_rows(one) else [one] * ranks for one in batch]
    rows = [len(one) for one in np.array_split(np.arange(count), ranks)]
    return [([piece[rank] for piece in pieces], rows[rank] / count) for rank in range(ranks)]


def _has_rows(one: object) -> bool:
    return isinstance(one, np.ndarray) and one.ndim > 0
