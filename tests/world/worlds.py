"""What the tests of worlds share: arrays for ranks, and what NumPy makes of them."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.world.sharded import Sharded
from accel_lab.world.world import World

Array = npt.NDArray[Any]
FOLDS: dict[str, Any] = {
    "sum": np.sum,
    "avg": np.mean,
    "prod": np.prod,
    "min": np.min,
    "max": np.max,
}


def rank_arrays(dtype: str, shape: tuple[int, ...], ranks: int, seed: int = 0) -> list[Array]:
    """Return an array for each rank, small enough for sums and products of narrow dtypes."""
    random = np.random.default_rng(seed)
    kind = numpy_dtype(dtype)
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("uint") else -3
        return [random.integers(low, 4, shape).astype(kind) for _ in range(ranks)]
    if dtype == "bool":
        return [random.integers(0, 2, shape).astype(kind) for _ in range(ranks)]
    arrays = [random.uniform(0.5, 2.0, shape) * random.choice([-1, 1], shape) for _ in range(ranks)]
    if dtype.startswith("complex"):
        return [(one + 1j * one[::-1]).astype(kind) for one in arrays]
    return [one.astype(kind) for one in arrays]


def own(world: World, arrays: Sequence[Array]) -> Sharded:
    """Put each rank's array there."""
    pairs = zip(world.devices, arrays, strict=True)
    return world.own([device.put(array) for device, array in pairs])


def ranks_of(made: Sharded) -> list[Array]:
    """Return each rank's array."""
    return [np.asarray(ref.device.get(ref).result(60)) for ref in made.refs]


def folded(op: str, arrays: Sequence[Array], scale: float = 1.0) -> tuple[Array, Array]:
    """Return what arrays fold to, in float64, and how far off the answer in their dtype may be.

    Each of the n - 1 steps rounds once, and so does the factor before (Higham, "Accuracy and
    stability of numerical algorithms", 2nd ed., 3.1: n u / (1 - n u) of the sum of magnitudes).
    """
    kind = arrays[0].dtype
    wide = np.stack([np.asarray(one, np.float64) * scale for one in arrays])
    exact = FOLDS[op](wide, axis=0)
    if np.issubdtype(kind, np.integer):
        return np.trunc(exact), np.zeros_like(exact)
    steps = len(arrays) + 2
    unit = float(ml_dtypes.finfo(kind).eps)  # type: ignore[no-untyped-call]
    size = np.abs(exact) if op in ("prod", "min", "max") else np.abs(wide).sum(axis=0)
    return exact, steps * unit * size
