"""The frequencies that the components of a transform stand for, and their order."""

import math
from typing import Any, ClassVar

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE, SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function, maker, named
from accel_lab.libraries.authoring.operand import describe, result
from accel_lab.libraries.authoring.options import DType, Ints, Options
from accel_lab.libraries.authoring.shape import Integers
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.fft.transform import axis_from_0, require_integers

__all__ = [
    "Frequencies",
    "Shift",
    "fftfreq",
    "fftshift",
    "frequencies",
    "ifftshift",
    "rfftfreq",
    "shift",
]


class Frequencies(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=186):
    """Make the frequencies of a transform's `n` components, for samples `d` apart.

    With `half` they are those that `R2C` keeps.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    n: int
    d: int | float = 1.0
    _: Options
    half: bool = False
    dtype: DType = "float64"

    def infer(self) -> Spec:
        """Return one for each component."""
        numpy_dtype(self.dtype)  # refuses what is none
        if type(self.n) is not int or self.n < 1:
            raise InvalidArgument(f"Frequencies: n must be an integer from 1, not {self.n!r}")
        if type(self.d) not in (int, float) or not math.isfinite(self.d) or self.d == 0:
            raise InvalidArgument(f"Frequencies: d must be a number but 0, not {self.d!r}")
        return result(self, (self.n // 2 + 1 if self.half else self.n,), self.dtype)


class Shift(Shaped[AccelRef], frozen=True, tag=191):
    """Move frequency 0 from the first place along `axes`, all by default, to the middle, or back.

    Of an odd number of points `inverse` is not the same as to do it again.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = SINGLE_AND_DOUBLE | {"float16"}
    shapes: ClassVar = "(...)->(...)"
    x: AccelRef
    axes: Ints | None = None
    _: Options
    inverse: bool = False
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse axes that `x` does not have, or one named twice."""
        require_integers(self, "axes", self.axes)
        axes: Any = self.axes or ()
        try:
            chosen = {axis_from_0(axis, self.x.ndim) for axis in axes}
        except InvalidArgument as error:
            raise InvalidArgument(f"Shift: {error}; x is {describe(self.x)}") from None
        if len(chosen) < len(axes):
            raise InvalidArgument(f"Shift: axes {[*axes]} name an axis twice")


frequencies, shift = maker(Frequencies), function(Shift)


def _frequencies(
    name: str, device: Device, n: int, d: float = 1.0, *, dtype: object = "float64"
) -> AccelRef:
    return frequencies(device_first(device), n, d, half=name == "rfftfreq", dtype=dtype)


_freq = named(
    _frequencies,
    """Return the frequencies of {text} components of a transform, as scipy.fft.{name}.

Does not block.

Raises:
    InvalidArgument, UnsupportedDtype: as `frequencies`.
""",
)
fftfreq, rfftfreq = _freq("fftfreq", "all `n`"), _freq("rfftfreq", "those that `rfft` keeps of `n`")


def _shift(name: str, x: AccelRef, axes: Integers | None = None) -> AccelRef:
    return shift(x, axes, inverse=name == "ifftshift")


_shifting = named(
    _shift,
    """Return the components with frequency 0 {text} along axes, as scipy.fft.{name}.

Does not block.

Raises:
    InvalidArgument, UnsupportedDtype: as `shift`.
""",
)
fftshift = _shifting("fftshift", "in the middle")
ifftshift = _shifting("ifftshift", "first again")
