"""What the messages of `array` have in common."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.dtype_sets import ALL
from accel_lab.libraries.authoring.shaped import Shaped


class ArrayMessage(Shaped[AccelRef], frozen=True, array_like=True, eq=False):
    """A message of `array`: it answers with a buffer, and every dtype has it."""

    library: ClassVar[str] = "array"
    dtypes: ClassVar = ALL
