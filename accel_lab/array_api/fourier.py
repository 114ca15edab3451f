"""Fourier transforms by the standard's names: the extension `fft`. Nothing here blocks."""

import operator
from typing import Literal, TypeAlias

import numpy as np

from accel_lab.array_api.devices import device_or_default
from accel_lab.array_api.dtypes import dtype_or
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.array.shaping import axes_of
from accel_lab.libraries.authoring.shape import Integers
from accel_lab.libraries.fft import library as transforms

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

Norm: TypeAlias = Literal["backward", "ortho", "forward"]
_BACK: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm of the way back: `hfft` goes forwards by a transform that goes back."""


def fft(
    x: AccelRef, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> AccelRef:
    """Transform along one axis of `n` points."""
    return transforms.fft(x, n, axis, norm)


def ifft(
    x: AccelRef, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> AccelRef:
    """Transform back along one axis of `n` points."""
    return transforms.ifft(x, n, axis, norm)


def rfft(
    x: AccelRef, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> AccelRef:
    """Transform real numbers along one axis of `n` points; only n // 2 + 1 are kept."""
    return transforms.rfft(x, n, axis, norm)


def irfft(
    x: AccelRef, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> AccelRef:
    """Return the `n` real numbers of which `rfft` makes `x`."""
    return transforms.irfft(x, n, axis, norm)


def hfft(
    x: AccelRef, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> AccelRef:
    """Transform the half of `n` points whose others are conjugates of these, to real numbers."""
    back = _other_way(norm)
    return transforms.irfft(array.conjugate(x), n, axis, back)


def ihfft(
    x: AccelRef, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> AccelRef:
    """Return the half of the points of which `hfft` makes `x`."""
    return array.conjugate(transforms.rfft(x, n, axis, _other_way(norm)))


def fftn(
    x: AccelRef,
    /,
    *,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm = "backward",
) -> AccelRef:
    """Transform along several axes, all by default."""
    return transforms.fftn(x, s, axes, norm)


def ifftn(
    x: AccelRef,
    /,
    *,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm = "backward",
) -> AccelRef:
    """Transform back along several axes, all by default."""
    return transforms.ifftn(x, s, axes, norm)


def rfftn(
    x: AccelRef,
    /,
    *,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm = "backward",
) -> AccelRef:
    """Transform real numbers along several axes; half of the last one is kept."""
    return transforms.rfftn(x, s, axes, norm)


def irfftn(
    x: AccelRef,
    /,
    *,
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm = "backward",
) -> AccelRef:
    """Return the real numbers of which `rfftn` makes `x`."""
    return transforms.irfftn(x, s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: object = None, device: object = None) -> AccelRef:
    """Return the frequencies of the `n` points that `fft` makes, of samples at distances `d`."""
    count = _points(n)
    places = np.fft.ifftshift(np.arange(-(count // 2), count - count // 2))
    return _frequencies(places, count * d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: object = None, device: object = None) -> AccelRef:
    """Return the frequencies of the points that `rfft` keeps, of `n` samples at distances `d`."""
    count = _points(n)
    return _frequencies(np.arange(count // 2 + 1), count * d, dtype, device)


def fftshift(x: AccelRef, /, *, axes: Integers | None = None) -> AccelRef:
    """Return `x` with the frequency 0 in the middle of these axes, all by default."""
    along = sorted(axes_of("fftshift", x, axes))
    return array.roll(x, [x.shape[at] // 2 for at in along], along)


def ifftshift(x: AccelRef, /, *, axes: Integers | None = None) -> AccelRef:
    """Return `x` with the frequency 0 first, which `fftshift` brought to the middle."""
    along = sorted(axes_of("ifftshift", x, axes))
    return array.roll(x, [-(x.shape[at] // 2) for at in along], along)


def _other_way(norm: Norm) -> Norm:
    if norm not in _BACK:
        raise InvalidArgument(f"norm is {', '.join(map(repr, _BACK))}, not {norm!r}")
    return _BACK[norm]


def _points(n: int) -> int:
    count = operator.index(n)
    if count < 1:
        raise InvalidArgument(f"n is {count}; a transform needs at least one point")
    return count


def _frequencies(places: np.ndarray, over: float, dtype: object, device: object) -> AccelRef:
    made = (places / over).astype(dtype_or(dtype, "float64"))
    return device_or_default(device).put(made)
