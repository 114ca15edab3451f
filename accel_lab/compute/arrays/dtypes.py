"""The dtypes that cross the wire, by name.

NumPy's own names, and ml_dtypes' for what NumPy lacks. A name says the kind of value, never
the byte order: memory of the arena and of every device is in native order.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from accel_lab.errors import InvalidArgument

_TABLE: dict[str, np.dtype[Any]] = {
    str(dtype): dtype
    for dtype in map(
        np.dtype,
        (
            np.bool_,
            np.int8,
            np.int16,
            np.int32,
            np.int64,
            np.uint8,
            np.uint16,
            np.uint32,
            np.uint64,
            ml_dtypes.float8_e4m3fn,
            ml_dtypes.float8_e5m2,
            ml_dtypes.bfloat16,
            np.float16,
            np.float32,
            np.float64,
            np.complex64,
            np.complex128,
        ),
    )
}
_DOUBLE = frozenset({"float64", "complex128"})
_REAL_OF = {"complex64": "float32", "complex128": "float64"}
_PLAIN = {name: name for name in _TABLE}
NAMES: tuple[str, ...] = tuple(_TABLE)
"""Every dtype name, narrow to wide within its kind."""


def canonical(dtype: object) -> str:
    """Return the wire name of anything that NumPy takes as a dtype.

    `">f4"`, `np.float32` and `np.dtype("float32")` are all "float32". Python's `bool`, `int`,
    `float` and `complex` are NumPy's defaults for them.

    Raises:
        InvalidArgument: it is no dtype, or one that is not in the table.
    """
    if isinstance(dtype, str) and dtype in _PLAIN:
        return _PLAIN[dtype]
    if dtype is None:
        raise _unknown(dtype)
    try:
        # A handle has it, which a cache must not keep.
        return _lookup(getattr(dtype, "__numpy_dtype__", dtype))
    except (TypeError, ValueError, SyntaxError):  # NumPy parses "f4, (2,3)f8"
        raise _unknown(dtype) from None


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the native NumPy dtype of a wire name.

    Raises:
        InvalidArgument: no such name.
    """
    try:
        return _TABLE[name]
    except KeyError:
        raise _unknown(name) from None


@lru_cache
def itemsize(name: str) -> int:
    """Return the bytes of one element.

    Raises:
        InvalidArgument: no such name.
    """
    return numpy_dtype(name).itemsize


def is_complex(name: str) -> bool:
    """Tell whether values have an imaginary part.

    Raises:
        InvalidArgument: no such name.
    """
    return numpy_dtype(name).kind == "c"


def is_float(name: str) -> bool:
    """Tell whether values are real floating point, of any width; complex is not.

    Raises:
        InvalidArgument: no such name.
    """
    return numpy_dtype(name).kind not in "biuc"


def real_of(name: str) -> str:
    """Return the dtype of one component: "float32" for "complex64", else `name` itself.

    Raises:
        InvalidArgument: no such name.
    """
    numpy_dtype(name)
    return _REAL_OF.get(name, name)


def complex_of(name: str) -> str:
    """Return the complex dtype of the same precision, which is single unless it is double."""
    return "complex128" if name in _DOUBLE else "complex64"


@lru_cache(maxsize=256, typed=True)  # np.int64(1) has a dtype, and True none
def _lookup(dtype: Hashable) -> str:
    # The cache keys `np.dtype("<f4")` and `">f4"` apart, and both are "float32".
    name = str(np.dtype(dtype).newbyteorder("="))  # type: ignore[call-overload]
    if name not in _TABLE:
        raise _unknown(dtype)
    return name


def _unknown(dtype: object) -> InvalidArgument:
    return InvalidArgument(f"dtype {_named(dtype)} is not one of {', '.join(NAMES)}")


def _named(dtype: object) -> str:
    return str(dtype) if isinstance(dtype, np.dtype) else repr(dtype)
