"""Whether two models answer alike."""

from typing import Any

import numpy as np


def equal(old: Any, new: Any) -> bool:
    """Whether two answers are the same, arrays within a relative 1e-5."""
    if isinstance(old, np.ndarray) or isinstance(new, np.ndarray):
        old, new = np.asarray(old), np.asarray(new)
        if old.shape != new.shape:
            return False
        if np.issubdtype(old.dtype, np.inexact) or np.issubdtype(new.dtype, np.inexact):
            return bool(np.allclose(old, new, rtol=1e-5, equal_nan=True))
        return bool(np.array_equal(old, new))
    return bool(old == new)
