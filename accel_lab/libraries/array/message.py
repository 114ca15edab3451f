"""What the messages of `array` have in common."""

from typing import Any, ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import OutOfBounds
from accel_lab.libraries.authoring.dtype_sets import ALL
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.shaped import Shaped

NUMPYS = ALL - {"bfloat16", "float8_e4m3fn", "float8_e5m2"}
"""The dtypes that NumPy has itself."""


class ArrayMessage(Shaped[AccelRef], frozen=True, array_like=True, eq=False):
    """A message of `array`: it answers with a buffer, and every dtype has it."""

    library: ClassVar[str] = "array"
    dtypes: ClassVar = ALL


def axis_of(message: str, x: AccelRef, axis: Any) -> int:
    """Return an axis of `x`, counted from 0.

    Raises:
        OutOfBounds: it has no such axis.
    """
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        raise OutOfBounds(f"{message}: axis {axis!r} is none of x {describe(x)}")
    return axis % x.ndim
