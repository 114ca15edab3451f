"""A batch shared out among ranks, by its rows."""

import numpy as np

from accel_lab.blueprints.train.trainers.options import Batch
from accel_lab.errors import InvalidArgument


def shared_out(batch: Batch, ranks: int, what: str = "ranks") -> list[tuple[Batch, float]]:
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
