"""Fourier transforms: cuFFT on `cuda`, SciPy's pocketfft on `host`.

Signs, defaults and `norm` are SciPy's: forwards is exp(-2 pi i j k / n), and with the default norm
"backward" the way back is divided by the number of points. float32 and complex64 are computed in
single precision, float64 and complex128 in double. Operands may be views of any strides; axes that
are not transformed are a batch.
"""

import operator
from typing import ClassVar, SupportsIndex

from accel_lab.compute.arrays.dtypes import real_of
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import flag
from accel_lab.libraries.authoring.shape import Integers, ints
from accel_lab.libraries.fft.transform import Norm, Transform, complex_of, transform_spec


class C2C(Transform, frozen=True, tag=180):
    """Transform complex numbers along any axes, forwards or, if `inverse`, backwards.

    Real `x` is taken as complex. `out` may be `x`.
    """

    inverse: bool = False

    def infer(self) -> Spec:
        """Return the shape with the axes' new extents, and the complex dtype."""
        return transform_spec(self, "C2C", complex_of(self.x.dtype))


class R2C(Transform, frozen=True, tag=181):
    """Transform real numbers forwards; of the last axis only the first n // 2 + 1 are kept.

    The others are their conjugates.
    """

    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE

    def infer(self) -> Spec:
        """Return the shape with the last axis halved, and the complex dtype."""
        return transform_spec(self, "R2C", complex_of(self.x.dtype))


class C2R(Transform, frozen=True, tag=182):
    """Transform backwards what `R2C` keeps, into real numbers; `s` has the extents of these.

    Without `s` the last axis gets 2 (m - 1) points of the m that `x` has. What would make the
    result complex is ignored, as the imaginary part of the mean. Real `x` is taken as complex.
    """

    def infer(self) -> Spec:
        """Return the shape of the real result and its dtype."""
        return transform_spec(self, "C2R", real_of(complex_of(self.x.dtype)))


def c2c(
    x: AccelRef,
    *,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
    inverse: bool = False,
    out: AccelRef | None = None,
) -> AccelRef:
    """Return the complex transform along `axes`, as `C2C` says; does not block.

    Raises:
        InvalidArgument: the extents, axes, norm or `out` do not fit.
        UnsupportedDtype: `x` is neither single nor double; cast it first.
    """
    turned = flag("inverse", inverse)
    return device_of(x).ask(C2C(x, _ints("s", s), _ints("axes", axes), _norm(norm), out, turned))


def r2c(
    x: AccelRef,
    *,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
    out: AccelRef | None = None,
) -> AccelRef:
    """Return half of the transform of real numbers, as `R2C` says; does not block.

    Raises:
        InvalidArgument: the extents, axes, norm or `out` do not fit.
        UnsupportedDtype: `x` is neither float32 nor float64; cast it first.
    """
    return device_of(x).ask(R2C(x, _ints("s", s), _ints("axes", axes), _norm(norm), out))


def c2r(
    x: AccelRef,
    *,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
    out: AccelRef | None = None,
) -> AccelRef:
    """Return the real numbers of which `x` is half of the transform, as `C2R` says.

    Does not block; `x` stays as it is.

    Raises:
        InvalidArgument: the extents, axes, norm or `out` do not fit.
        UnsupportedDtype: `x` is neither single nor double; cast it first.
    """
    return device_of(x).ask(C2R(x, _ints("s", s), _ints("axes", axes), _norm(norm), out))


def fft(x: AccelRef, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> AccelRef:
    """Transform along one axis of `n` points, as scipy.fft.fft; real `x` is taken as complex.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2c`.
    """
    return c2c(x, s=_points(n), axes=_one("axis", axis), norm=norm)


def ifft(x: AccelRef, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> AccelRef:
    """Transform back along one axis of `n` points, as scipy.fft.ifft.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2c`.
    """
    return c2c(x, s=_points(n), axes=_one("axis", axis), norm=norm, inverse=True)


def fft2(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers = (-2, -1),
    norm: Norm | None = None,
) -> AccelRef:
    """Transform along two axes, as scipy.fft.fft2.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2c`.
    """
    return c2c(x, s=s, axes=axes, norm=norm)


def ifft2(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers = (-2, -1),
    norm: Norm | None = None,
) -> AccelRef:
    """Transform back along two axes, as scipy.fft.ifft2.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2c`.
    """
    return c2c(x, s=s, axes=axes, norm=norm, inverse=True)


def fftn(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
) -> AccelRef:
    """Transform along several axes, all by default, as scipy.fft.fftn.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2c`.
    """
    return c2c(x, s=s, axes=axes, norm=norm)


def ifftn(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
) -> AccelRef:
    """Transform back along several axes, all by default, as scipy.fft.ifftn.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2c`.
    """
    return c2c(x, s=s, axes=axes, norm=norm, inverse=True)


def rfft(x: AccelRef, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> AccelRef:
    """Transform real numbers along one axis of `n` points, as scipy.fft.rfft.

    Raises:
        InvalidArgument, UnsupportedDtype: as `r2c`.
    """
    return r2c(x, s=_points(n), axes=_one("axis", axis), norm=norm)


def irfft(x: AccelRef, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> AccelRef:
    """Return the `n` real numbers of which `x` is the `rfft`, as scipy.fft.irfft.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2r`.
    """
    return c2r(x, s=_points(n), axes=_one("axis", axis), norm=norm)


def rfft2(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers = (-2, -1),
    norm: Norm | None = None,
) -> AccelRef:
    """Transform real numbers along two axes, as scipy.fft.rfft2.

    Raises:
        InvalidArgument, UnsupportedDtype: as `r2c`.
    """
    return r2c(x, s=s, axes=axes, norm=norm)


def irfft2(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers = (-2, -1),
    norm: Norm | None = None,
) -> AccelRef:
    """Return the real numbers of which `x` is the `rfft2`, as scipy.fft.irfft2.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2r`.
    """
    return c2r(x, s=s, axes=axes, norm=norm)


def rfftn(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
) -> AccelRef:
    """Transform real numbers along several axes, all by default, as scipy.fft.rfftn.

    Raises:
        InvalidArgument, UnsupportedDtype: as `r2c`.
    """
    return r2c(x, s=s, axes=axes, norm=norm)


def irfftn(
    x: AccelRef,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
) -> AccelRef:
    """Return the real numbers of which `x` is the `rfftn`, as scipy.fft.irfftn.

    Raises:
        InvalidArgument, UnsupportedDtype: as `c2r`.
    """
    return c2r(x, s=s, axes=axes, norm=norm)


def _ints(name: str, value: Integers | None) -> tuple[int, ...] | None:
    """Return integers as they travel; None stays None."""
    return None if value is None else ints(name, value)


def _norm(norm: Norm | None) -> Norm:
    return "backward" if norm is None else norm


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
