"""Fourier transforms of complex and of real numbers, by SciPy's names and by cuFFT's."""

from functools import partial
from typing import Any, ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function, named
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shape import Integers
from accel_lab.libraries.authoring.shaped import real_of
from accel_lab.libraries.fft.transform import Kind, Norm, Transform, one_integer, points

__all__ = [
    "C2C",
    "C2R",
    "R2C",
    "c2c",
    "c2r",
    "fft",
    "fft2",
    "fftn",
    "ifft",
    "ifft2",
    "ifftn",
    "irfft",
    "irfft2",
    "irfftn",
    "r2c",
    "rfft",
    "rfft2",
    "rfftn",
]


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
    results: ClassVar = (real_of,)


c2c, r2c, c2r = function(C2C), function(R2C), function(C2R)
_SENT: dict[str, Any] = {"fft": c2c, "ifft": partial(c2c, inverse=True), "rfft": r2c, "irfft": c2r}


def _along_one(
    name: str, x: AccelRef, n: int | None = None, axis: int = -1, norm: Norm | None = None
) -> AccelRef:
    ref: AccelRef = _SENT[name](x, s=points(n), axes=one_integer("axis", axis), norm=norm)
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


_HELP = """{{text}} along {}, as scipy.fft.{{name}}; does not block.

Raises:
    InvalidArgument, UnsupportedDtype: as `c2c`, `r2c` for real numbers, or `c2r` back to them.
"""
_axis = named(_along_one, _HELP.format("one axis of `n` points"))
_pair = named(_along_two, _HELP.format("two axes"))
_several = named(_along_several, _HELP.format("several axes, all by default"))
_BACK = "Return the real numbers of which `x` is half of the transform"

fft = _axis("fft", "Transform")
ifft = _axis("ifft", "Transform back")
rfft = _axis("rfft", "Transform real numbers")
irfft = _axis("irfft", _BACK)
fft2 = _pair("fft2", "Transform")
ifft2 = _pair("ifft2", "Transform back")
rfft2 = _pair("rfft2", "Transform real numbers")
irfft2 = _pair("irfft2", _BACK)
fftn = _several("fftn", "Transform")
ifftn = _several("ifftn", "Transform back")
rfftn = _several("rfftn", "Transform real numbers")
irfftn = _several("irfftn", _BACK)
