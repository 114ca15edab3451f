"""SciPy's BLAS by the names of the routines and a dtype."""

from typing import Any

import numpy as np
from scipy.linalg import blas

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def routine(name: str, dtype: Any) -> Any:
    """Return a routine, as `symm` of float64, which is dsymm; `scasum` is one of complex64.

    A Hermitian matrix of real numbers is a symmetric one.
    """
    letter = _LETTERS[np.dtype(dtype).char]
    if name.startswith("he") and letter in "sd":
        name = f"sy{name[2:]}"
    whole = getattr(blas, name, None)
    return whole if whole is not None else getattr(blas, letter + name)
