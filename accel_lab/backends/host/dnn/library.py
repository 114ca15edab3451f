"""Layers of neural networks on the host: NumPy, whose products of matrices are BLAS's."""

from typing import Any

import numpy as np
import scipy.special

from accel_lab.libraries.dnn.evaluation.exponentials import Exponentials
from accel_lab.libraries.dnn.evaluation.layers import Activations, Convolutions
from accel_lab.libraries.dnn.evaluation.normalizing import Norms
from accel_lab.libraries.dnn.evaluation.pooling import Pooling
from accel_lab.libraries.dnn.message import computed_in


class HostKit:
    """NumPy's arrays, and SciPy's functions."""

    xp = np

    def widened(self, x: Any, dtype: str) -> Any:
        """Return an operand in the dtype that is computed in; None stays."""
        return None if x is None else x.astype(computed_in(dtype), copy=False)

    def store(self, value: Any, out: Any, dtype: str) -> None:  # noqa: ARG002 - `out` has it
        """Write a result, rounded."""
        out[...] = value

    def erf(self, x: Any) -> Any:
        """Return the error function of each element."""
        return scipy.special.erf(x)


class HostDnn(Convolutions, Activations, Pooling, Norms, Exponentials):
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def __init__(self) -> None:
        super().__init__(HostKit())
