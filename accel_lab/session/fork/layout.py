"""Buffers that share memory: which bytes they have together, and how each looks into these.

These functions run in contexts, on the backend's arrays.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_lab.compute.suspension.memory_image import (
    Look,
    Range,
    flat,
    laid,
    look_of,
    ranges_of,
    seen_at,
)


def looks_of(*arrays: Any) -> list[dict[int, Look]]:
    """Return, for each memory that these arrays have, how they look into it, by position."""
    return [{seen.key: look_of(seen, one.low) for seen in one.seen} for one in _ranges(arrays)]


def bytes_of(member: int, *arrays: Any) -> Any:
    """Return the bytes of the memory that one of these arrays looks into, as an array of them."""
    one = next(one for one in _ranges(arrays) if any(seen.key == member for seen in one.seen))
    xp = _module_of(arrays[0])
    return flat(xp, one).copy() if one.nbytes else xp.empty((0,), "uint8")


def looked(root: Any, look: Look) -> Any:
    """Return the array that looks into bytes."""
    return laid(_module_of(root), root, look)


def _ranges(arrays: Sequence[Any]) -> list[Range]:
    return ranges_of(seen_at(_address(one), key, one) for key, one in enumerate(arrays))


def _address(array: Any) -> int:
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def _module_of(array: Any) -> Any:
    """Return the backend's arrays: NumPy, or CuPy, which a context has loaded then."""
    return sys.modules[type(array).__module__.partition(".")[0]]
