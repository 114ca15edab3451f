"""How cuBLAS calls its routines and options where each dtype has a routine of its own."""

from collections.abc import Callable, Iterable
from typing import Any

from nvmath.bindings import cublas

SIDES = {"l": 1, "r": 0}
"""cublasSideMode_t of the transposed product: what stands on the left of it is on the right."""

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_FILLS = {"l": 0, "u": 1}  # cublasFillMode_t


def routines(
    name: str, suffix: str = "_64", of: Iterable[str] = tuple(_LETTERS)
) -> dict[str, Callable[..., Any]]:
    """Return the routine of each dtype, as `{}trsm`, with counts of 64 bits unless told otherwise.

    They are looked up where a module is imported, so that a missing one is missed at once.
    """
    return {dtype: getattr(cublas, name.format(_LETTERS[dtype]) + suffix) for dtype in of}


def fill(uplo: str, *, by_rows: bool) -> int:
    """Return which triangle of what lies in memory is meant, read column by column."""
    return _FILLS[uplo] ^ by_rows
