"""Expressions of fresh results."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.fft

from accel_lab.backends.eager import EXPRESSIONS
from accel_lab.backends.host.baseline import Call, nothing


def expression(name: str, size: int) -> Call:
    """Prepare an expression of two square matrices."""
    functions: Any = SimpleNamespace(
        exp=np.exp, maximum=np.maximum, where=np.where, rfft=scipy.fft.rfft
    )
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size), dtype=np.float32) for _ in "ab")
    evaluate = EXPRESSIONS[name]
    return "NumPy", lambda: evaluate(functions, a, b), nothing
