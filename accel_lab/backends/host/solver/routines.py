"""SciPy's LAPACK by the names of the routines and a dtype."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def routine(name: str, dtype: Any) -> Callable[..., Any]:
    """Return a routine, as `getrf` of float64, which is dgetrf.

    What is called symmetric, as `syevd`, is Hermitian for complex numbers: zheevd.
    """
    letter = _LETTERS[np.dtype(dtype).char]
    if name.startswith("sy") and letter in "cz":
        name = f"he{name[2:]}"
    found: Callable[..., Any] = getattr(lapack, letter + name)
    return found


def best_lwork(name: str, dtype: Any, *arguments: Any, **options: Any) -> int:
    """Return how large a workspace a routine wants, in elements."""
    work, *_ = routine(f"{name}_lwork", dtype)(*arguments, **options)
    return enough(work)


def enough(work: Any) -> int:
    """Return a count that a routine gave as a number, which may have been rounded down."""
    return int(work.real * (1 + 2**-20)) + 1


def no_errors(x: Any) -> Any:
    """Return a status that all went well, for each matrix of a stack."""
    return np.zeros(x.shape[:-2], np.int32)
