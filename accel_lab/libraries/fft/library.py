"""Fourier transforms: cuFFT on `cuda`, SciPy's pocketfft on `host`.

Signs, defaults and `norm` are SciPy's: forwards is exp(-2 pi i j k / n), and with the default norm
"backward" the way back is divided by the number of points. float32 and complex64 are computed in
single precision, float64 and complex128 in double. Operands may be views of any strides; axes that
are not transformed are a batch.
"""

import operator
from functools import partial
from typing import Any, ClassVar, SupportsIndex

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function, named
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shape import Integers
from accel_lab.libraries.fft.transform import Kind, Norm, Transform


class C2C(Transform, frozen=True, tag=180):
    """Transform complex numbers along any axes, forwards or, if `inverse`, backwards.

    Real `x` is taken as complex. `out` may be `x`.
    """

    kind: ClassVar[Kind] = "C2C"
    in_place: ClassVar = ("x",)
    _: Options
    inverse: bool = False


class R2C(Transform, frozen=True, tag=181):
    """Transform real numbers forwards; of the last axis only the first n // 2 + 1 are kept.

    The others are their conjugates.
    """

    kind: ClassVar[Kind] = "R2C"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE


class C2R(Transform, frozen=True, tag=182):
    """Transform backwards what `R2C` keeps, into real numbers; `s` has the extents of these.

    Without `s` the last axis gets 2 (m - 1) points of the m that `x` has. What would make the
    result complex is ignored, as the imaginary part of the mean. Real `x` is taken as complex.
    """

    kind: ClassVar[Kind] = "C2R"


c2c, r2c, c2r = function(C2C), function(R2C), function(C2R)
_SENT: dict[str, Any] = {"fft": c2c, "ifft": partial(c2c, inverse=True), "rfft": r2c, "irfft": c2r}
_WHAT = {
    "fft": ("C2C", "Transform {}; real `x` is taken as complex"),
    "ifft": ("C2C", "Transform back {}"),
    "rfft": ("R2C", "Transform real numbers {}"),
    "irfft": ("C2R", "Return the real numbers of which `x` is half of the transform {}"),
}


def _along_one(
    name: str, x: AccelRef, n: int | None = None, axis: int = -1, norm: Norm | None = None
) -> AccelRef:
    ref: AccelRef = _SENT[name](x, s=_points(n), axes=_one("axis", axis), norm=norm)
    return ref


def _along_several(
    name: str,
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
) -> AccelRef:
    ref: AccelRef = _SENT[name[:-1]](x, s=s, axes=axes, norm=norm)
    return ref


def _along_two(
    name: str,
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers = (-2, -1),
    norm: Norm | None = None,
) -> AccelRef:
    return _along_several(name, x, s, axes, norm)


def _help(name: str, along: str) -> str:
    sent, what = _WHAT[name.rstrip("2n")]
    return f"""{what.format(along)}, as scipy.fft.{name}; does not block.

Raises:
    InvalidArgument, UnsupportedDtype: as `{sent.lower()}`, which sends `{sent}`.
"""


def _one(name: str, value: SupportsIndex) -> int:
    """Return the only integer that an argument may be."""
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} must be one integer, not {value!r}") from None


def _points(n: int | None) -> tuple[int, ...] | None:
    """Return the extent of one axis; here -1 is no word for the operand's own."""
    if n is None:
        return None
    points = _one("n", n)
    if points < 1:
        raise InvalidArgument(f"n is {points}; a transform needs at least one point")
    return (points,)


fft = named(_along_one, "fft", _help("fft", "along one axis of `n` points"))
ifft = named(_along_one, "ifft", _help("ifft", "along one axis of `n` points"))
rfft = named(_along_one, "rfft", _help("rfft", "along one axis of `n` points"))
irfft = named(_along_one, "irfft", _help("irfft", "along one axis of `n` points"))
fft2 = named(_along_two, "fft2", _help("fft2", "along two axes"))
ifft2 = named(_along_two, "ifft2", _help("ifft2", "along two axes"))
rfft2 = named(_along_two, "rfft2", _help("rfft2", "along two axes"))
irfft2 = named(_along_two, "irfft2", _help("irfft2", "along two axes"))
fftn = named(_along_several, "fftn", _help("fftn", "along several axes, all by default"))
ifftn = named(_along_several, "ifftn", _help("ifftn", "along several axes, all by default"))
rfftn = named(_along_several, "rfftn", _help("rfftn", "along several axes, all by default"))
irfftn = named(_along_several, "irfftn", _help("irfftn", "along several axes, all by default"))
