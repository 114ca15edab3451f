"""Layers of neural networks on the host: NumPy, whose products of matrices are BLAS's."""

from typing import Any

import numpy as np
import scipy.special

from accel_lab.libraries.dnn.evaluation.exponentials import Exponentials
from accel_lab.libraries.dnn.evaluation.graph import Graphs
from accel_lab.libraries.dnn.evaluation.layers import Activations, Convolutions
from accel_lab.libraries.dnn.evaluation.normalizing import Norms
from accel_lab.libraries.dnn.evaluation.pooling import Pooling
from accel_lab.libraries.dnn.evaluation.recurrence import Recurrence
from accel_lab.libraries.dnn.evaluation.response import Responses
from accel_lab.libraries.dnn.evaluation.training import Training
from accel_lab.libraries.dnn.message import computed_in
from accel_lab.libraries.rng import philox


class HostKit:
    """NumPy's arrays, and SciPy's functions."""

    xp = np

    def widened(self, x: Any, dtype: str) -> Any:
        """Return an operand in the dtype that is computed in; None stays."""
        return None if x is None else x.astype(computed_in(dtype), copy=False)

    def store(self, value: Any, out: Any, dtype: str) -> None:  # noqa: ARG002 - `out` has it
        """Write a result, rounded."""
        out[...] = value

    def matmul(self, a: Any, b: Any) -> Any:
        """Return the products of two stacks."""
        return np.matmul(a, b)

    def erf(self, x: Any) -> Any:
        """Return the error function of each element."""
        return scipy.special.erf(x)

    def kept(self, seed: int, offset: int, count: int, threshold: int) -> Any:
        """Return which words are at least a threshold."""
        return philox.words(seed, 0, offset, count) >= threshold

    def summed(self, x: Any, places: Any, rows: int) -> Any:
        """Return the sums of rows."""
        made = np.zeros((rows, x.shape[1]), x.dtype)
        np.add.at(made, places, x)
        return made


class HostDnn(
    Convolutions,
    Activations,
    Pooling,
    Norms,
    Responses,
    Exponentials,
    Training,
    Recurrence,
    Graphs,
):
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def __init__(self) -> None:
        super().__init__(HostKit())
