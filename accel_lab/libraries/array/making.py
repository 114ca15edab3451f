"""Arrays made of a few numbers: ranges, and matrices with a diagonal."""

import math
from typing import Any, ClassVar

import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.device import Device, device_first, device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import unary, where
from accel_lab.libraries.array.joining import pad
from accel_lab.libraries.array.message import NUMPYS, ArrayMessage
from accel_lab.libraries.array.shaping import diagonal
from accel_lab.libraries.authoring.function import maker
from accel_lab.libraries.authoring.operand import RANGES, describe, plain, result
from accel_lab.libraries.authoring.options import DType, Options
from accel_lab.libraries.authoring.shape import require_extents

__all__ = ["Arange", "Eye", "arange", "diag", "eye", "linspace"]

_MATRIX = 2  # axes
_PAIR = 2  # the most numbers that are further apart than int64 reaches


class Arange(ArrayMessage, frozen=True, tag=114):
    """Make `count` numbers, `start + i * step`, computed in float64 or int64 and rounded once.

    `last`, if it is given, stands in place of the last one.
    """

    dtypes: ClassVar = NUMPYS - {"bool"}
    count: int
    start: int | float = 0
    step: int | float = 1
    dtype: DType = "int64"
    _: Options
    last: int | float | None = None

    def infer(self) -> Spec:
        """Return as many of the dtype that was given."""
        numpy_dtype(self.dtype)  # refuses what is none
        spec = result(self, require_extents("Arange", (self.count,)), self.dtype)
        numbers = {"start": self.start, "step": self.step}
        if self.last is not None:
            numbers["last"] = self.last
        for name, number in numbers.items():
            if type(number) not in (int, float):
                raise InvalidArgument(f"Arange: {name} must be an int or a float, not {number!r}")
        if self.dtype in RANGES and self.count:
            self._require_integers(numbers)
        return spec

    def _require_integers(self, numbers: dict[str, Any]) -> None:
        for name, number in numbers.items():
            if type(number) is not int:
                text = f"Arange: {name} is {number}, and {self.dtype} has integers only"
                raise InvalidArgument(f"{text}; make floats and convert with array.cast")
        low, high = RANGES[self.dtype]
        for number in (self.start, self.start + (self.count - 1) * self.step, self.last):
            if number is not None and not low <= number <= high:
                text = f"Arange: {number} is no {self.dtype}, which has {low} to {high}"
                raise InvalidArgument(text)


class Eye(ArrayMessage, frozen=True, tag=115):
    """Make a matrix of zeros with ones on diagonal `k`; it is square without `columns`."""

    rows: int
    columns: int | None = None
    k: int = 0
    dtype: DType = "float64"

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        numpy_dtype(self.dtype)  # refuses what is none
        columns = self.rows if self.columns is None else self.columns
        return result(self, require_extents("Eye", (self.rows, columns)), self.dtype)


eye = maker(Eye)


def arange(
    device: Device, start: Any, stop: Any = None, step: Any = 1, dtype: object = None
) -> AccelRef:
    """Return the numbers from `start`, or 0, up to `stop` in steps; does not block.

    `arange(device, stop)` is from 0. Without a dtype it is int64 of integers, else float64. An
    element is start + i * step, rounded once; NumPy's adds in the dtype itself.

    Raises:
        InvalidArgument: a number is none, the step is 0, or the dtype lacks one of them.
    """
    device_first(device)
    first, end = (0, start) if stop is None else (start, stop)
    first, end, by = (_real("arange", number) for number in (first, end, step))
    try:
        if all(type(one) is int for one in (first, end, by)):
            count = -((first - end) // by)
        else:
            count = math.ceil((end - first) / by)
    except (ValueError, ArithmeticError):
        text = f"arange: from {first} to {end} in steps of {by} is no number of elements"
        raise InvalidArgument(text) from None
    floating = any(type(one) is float for one in (first, end, by))
    made = canonical(dtype) if dtype is not None else "float64" if floating else "int64"
    if made in RANGES:
        first, by = _whole(first), _whole(by)
        if count <= _PAIR and type(by) is int and abs(by) >= 1 << 63:  # no message can carry it
            last = first + by if count == _PAIR else None
            return device.ask(Arange(max(0, count), first, 0, made, last=last))
    return device.ask(Arange(max(0, count), plain(first), plain(by), made))


def linspace(
    device: Device,
    start: Any,
    stop: Any,
    num: int = 50,
    *,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: object = None,
) -> Any:
    """Return `num` numbers at equal distances from `start` to `stop`; does not block.

    `start` and `stop` are numbers. Without `endpoint` the next one would be `stop`. With `retstep`
    the distance is returned, too. Integers are rounded down, as NumPy's are.

    Raises:
        InvalidArgument: a number is none, or `num` is less than 0.
    """
    device_first(device)
    first, end = (float(_real("linspace", number)) for number in (start, stop))
    if type(count := plain(num)) is not int or count < 0:
        raise InvalidArgument(f"linspace: num must be an integer from 0, not {num!r}")
    parts = count - 1 if endpoint else count
    step = (end - first) / parts if parts > 0 else math.nan
    made = "float64" if dtype is None else canonical(dtype)
    is_float = made not in RANGES and made != "bool"
    last = end if endpoint and count > 1 else None
    by = 0.0 if parts <= 0 else step
    message = Arange(count, first, by, made if is_float else "float64", last=last)
    spaced = device.ask(message)
    if not is_float:
        spaced = (unary("floor", spaced) if made != "bool" else spaced).astype(made)
    return (spaced, step) if retstep else spaced


def diag(x: AccelRef, k: int = 0) -> AccelRef:
    """Return a view of diagonal `k` of a matrix, or a matrix whose diagonal is a vector.

    Does not block.

    Raises:
        InvalidArgument: it is neither.
    """
    device, k = device_of(x), plain(k)
    if x.ndim == _MATRIX:
        return diagonal(x, k)
    if x.ndim != 1 or type(k) is not int:
        text = f"diag: x is {describe(x)}, and is to be a vector or a matrix; k is {k!r}"
        raise InvalidArgument(text)
    extent = x.size + abs(k)
    # Its element stands in the row, or in the column, of its number.
    wide = pad(x, (0, abs(k)))
    spread = wide.reshape((extent, 1) if k >= 0 else (1, extent))
    zero = device.put(np.zeros((), numpy_dtype(x.dtype)))
    return where(eye(device, extent, None, k, "bool"), spread, zero)


def _real(name: str, number: Any) -> Any:
    """Return a real number as Python's int or float.

    Raises:
        InvalidArgument: it is none.
    """
    if isinstance(number, np.generic):
        number = number.item()
    if isinstance(number, bool):
        number = int(number)
    if type(number) not in (int, float):
        raise InvalidArgument(f"{name}: {number!r} is no real number")
    return number


def _whole(number: Any) -> Any:
    """Return a float that is an integer as one."""
    return int(number) if type(number) is float and number.is_integer() else number
