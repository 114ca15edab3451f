"""Arrays of narrow floats, which CuPy holds as their bits: made wider, and written."""

from functools import lru_cache
from typing import Any

import cupy

from accel_lab.backends.cuda.array.elementwise import cast_kernel
from accel_lab.backends.cuda.device.narrow_floats import FORMATS


def widened(x: Any, dtype: str, wide: str) -> Any:
    """Return an array in a wider dtype; None stays."""
    if x is None or dtype == wide:
        return x
    if dtype not in FORMATS:
        return x.astype(wide)
    made = cupy.ndarray(x.shape, wide)
    _cast(dtype, wide)(x, made)
    return made


def store(value: Any, to: Any, dtype: str) -> None:
    """Write an array to its place, rounded to a dtype once."""
    if not to.size:
        return
    if dtype in FORMATS:
        _cast(str(value.dtype), dtype)(cupy.broadcast_to(value, to.shape), to)
    else:
        to[...] = value


@lru_cache(maxsize=64)
def _cast(source: str, target: str) -> Any:
    return cast_kernel(source, target)
