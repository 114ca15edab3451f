"""SciPy's sparse arrays over buffers, without copies where SciPy needs none."""

from typing import Any

import numpy as np
import scipy.sparse

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.sparse.matrix import Format, Shape

_NARROW = frozenset({"float16", "bfloat16"})


def narrow(dtype: str) -> Any:
    """Return what values of a dtype are computed in: float32 for narrow floats, else itself."""
    return np.dtype("float32") if dtype in _NARROW else numpy_dtype(dtype)


def wide(x: Any, dtype: str) -> Any:
    """Return values in the precision they are computed in."""
    return x.astype(np.float32) if dtype in _NARROW else x


def sparse_array(
    format_: Format, shape: Shape, values: Any, indices: Any, pointers: Any, *, dtype: str
) -> Any:
    """Return SciPy's array of a canonical matrix."""
    data = wide(values, dtype)
    if format_ == "coo":
        made = scipy.sparse.coo_array((data, (pointers, indices)), shape=shape)
    else:
        kind: Any = getattr(scipy.sparse, f"{format_}_array")
        made = kind((data, indices, pointers), shape=shape)
    made.has_canonical_format = True
    return made
