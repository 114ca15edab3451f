"""Dtypes of the array API standard: their names, limits, kinds and promotion."""

import builtins
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, is_complex, is_float, numpy_dtype, real_of
from accel_lab.compute.arrays.named_dtype import NAMED, NamedDType
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array

# ruff: noqa: A001, A002 - the standard's names

__all__ = [
    "astype",
    "bool",
    "can_cast",
    "complex64",
    "complex128",
    "finfo",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool = NAMED["bool"]
int8, int16, int32, int64 = (NAMED[f"int{bits}"] for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (NAMED[f"uint{bits}"] for bits in (8, 16, 32, 64))
float32, float64 = NAMED["float32"], NAMED["float64"]
complex64, complex128 = NAMED["complex64"], NAMED["complex128"]

DTYPES = (
    *(bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)
"""Those of the standard; handles of others, as float16, are taken all the same."""

_IS: dict[str, Callable[[np.dtype[Any]], builtins.bool]] = {
    "bool": lambda dtype: dtype.kind == "b",
    "signed integer": lambda dtype: dtype.kind == "i",
    "unsigned integer": lambda dtype: dtype.kind == "u",
    "integral": lambda dtype: dtype.kind in "iu",
    "real floating": lambda dtype: dtype.kind not in "biuc",
    "complex floating": lambda dtype: dtype.kind == "c",
    "numeric": lambda dtype: dtype.kind != "b",
}
"""Whether a dtype is of a kind; ml_dtypes' floats have kinds of their own."""


class FloatLimits(NamedTuple):
    """Limits of a floating dtype; of a complex one, those of its components."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: NamedDType


class IntegerLimits(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: NamedDType


def astype(
    x: AccelRef,
    dtype: object,
    /,
    *,
    copy: builtins.bool = True,
    device: Any = None,
) -> AccelRef:
    """Return `x` in another dtype; `x` itself if nothing changes and `copy` is False.

    Raises:
        InvalidArgument: it is no dtype, or has no imaginary part that `x` has.
    """
    target = canonical(dtype)
    made = x if x.dtype == target and not copy else array.cast(x, target)
    return made if device is None else made.to_device(device)


def can_cast(from_: object, to: object, /) -> builtins.bool:
    """Tell whether a dtype, or that of an array, is converted to another without loss."""
    return builtins.bool(np.can_cast(_numpys(from_), numpy_dtype(canonical(to)), "safe"))


def finfo(type: object, /) -> FloatLimits:
    """Return the limits of a floating dtype, or of that of an array.

    Raises:
        InvalidArgument: it has no floats.
    """
    name = canonical(type)
    if not is_float(name) and not is_complex(name):
        raise InvalidArgument(f"finfo: {name} has no floats; iinfo is for integers")
    made = real_of(name)
    of: Any = ml_dtypes.finfo  # NumPy's knows no narrow floats
    limits = of(numpy_dtype(made))
    eps, least = float(limits.eps), float(limits.smallest_normal)
    bits, most = int(limits.bits), float(limits.max)
    return FloatLimits(bits, eps, most, float(limits.min), least, NAMED[made])


def iinfo(type: object, /) -> IntegerLimits:
    """Return the limits of an integer dtype, or of that of an array.

    Raises:
        InvalidArgument: it has no integers.
    """
    name = canonical(type)
    if numpy_dtype(name).kind not in "iu":
        raise InvalidArgument(f"iinfo: {name} has no integers; finfo is for floats")
    limits = np.iinfo(numpy_dtype(name))
    return IntegerLimits(limits.bits, int(limits.max), int(limits.min), NAMED[name])


def isdtype(dtype: object, kind: Any) -> builtins.bool:
    """Tell whether a dtype is of a kind, as "real floating", or one of several in a tuple.

    Raises:
        InvalidArgument: there is no such kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    name = canonical(dtype)
    if isinstance(kind, str) and kind not in NAMED:
        if kind not in _IS:
            raise InvalidArgument(f"isdtype: {kind!r} is no kind; kinds are {', '.join(_IS)}")
        return _IS[kind](numpy_dtype(name))
    return name == canonical(kind)


def result_type(*arrays_and_dtypes: object) -> NamedDType:
    """Return the dtype to which arrays, dtypes and Python's numbers promote together.

    Raises:
        InvalidArgument: there is none.
    """
    if all(isinstance(one, int | float | complex) for one in arrays_and_dtypes):
        raise InvalidArgument("result_type: one at least must be an array or a dtype")
    try:
        made = np.result_type(*map(_numpys, arrays_and_dtypes))
        return NAMED[canonical(made)]
    except (TypeError, OverflowError):
        texts = " and ".join(str(getattr(one, "dtype", one)) for one in arrays_and_dtypes)
        raise InvalidArgument(f"result_type: {texts} have none in common") from None


def dtype_or(dtype: object, instead: str) -> str:
    """Return the name of a dtype, or another where none is given."""
    return instead if dtype is None else canonical(dtype)


def _numpys(value: object) -> Any:
    """Return NumPy's dtype of an array or a dtype; a number of Python's as it is."""
    if type(value) in (builtins.bool, int, float, complex):
        return value
    if isinstance(value, AccelRef):
        return numpy_dtype(value.dtype)
    return numpy_dtype(canonical(getattr(value, "dtype", value)))
