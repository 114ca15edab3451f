"""What both backends make of Fourier transforms: convolutions, analytic signals, cosine series.

The arithmetic is written once. A backend gives its own arrays and transforms: NumPy's and SciPy's,
or CuPy's. Nothing here waits for a device.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import scipy.fft

from accel_lab.libraries.fft.convolution import Convolve, window
from accel_lab.libraries.fft.real_to_real import R2R

# By (op, type): a, b and N - n of the angle pi (j + a) (k + b) / N between the j-th point and the
# k-th component (Makhoul, IEEE Trans. ASSP 28 (1980) 27-34, and the manual of SciPy).
_ANGLES = {
    ("dct", 1): (0.0, 0.0, -1),
    ("dct", 2): (0.5, 0.0, 0),
    ("dct", 3): (0.0, 0.5, 0),
    ("dct", 4): (0.5, 0.5, 0),
    ("dst", 1): (1.0, 1.0, 1),
    ("dst", 2): (0.5, 1.0, 0),
    ("dst", 3): (1.0, 0.5, 0),
    ("dst", 4): (0.5, 0.5, 0),
}
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
# By (op, type): the points, and then the components, that a series has at its very end.
_ENDS: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = {
    ("dct", 1): ((0, -1), (0, -1)),
    ("dct", 2): ((), (0,)),
    ("dct", 3): ((0,), ()),
    ("dst", 2): ((), (-1,)),
    ("dst", 3): ((-1,), ()),
}
_BLOCK = 8  # times the shorter operand is what a block of the longer one has


class Tools(NamedTuple):
    """A backend's functions on its own arrays.

    Attributes:
        arrays: NumPy or CuPy.
        fft: scipy.fft or cupy.fft.
    """

    arrays: Any
    fft: Any


def real_to_real(tools: Tools, m: R2R, x: Any) -> Any:
    """Return the cosine or sine transform of `x`, by one complex transform along each axis."""
    if x.dtype.kind == "c":
        return real_to_real(tools, m, x.real) + 1j * real_to_real(tools, m, x.imag)
    made = m.frame()
    for axis, n in zip(made.axes, made.lengths, strict=True):
        x = _series(tools, m, x, axis, n)
    return x


def _series(tools: Tools, m: R2R, x: Any, axis: int, n: int) -> Any:
    """Return sum over j of w[j] x[j] cos or sin(pi (j + a) (k + b) / N) for each k.

    The angle is that of a transform of 2 N points, and a phase before and a phase behind it.
    """
    xp = tools.arrays
    type_ = _INVERSE[m.variant] if m.inverse else m.variant
    a, b, more = _ANGLES[m.op, type_]
    whole = 2 * (n + more)
    at = xp.arange(n, dtype="float64")
    before = 2 * _factor(m, whole) * xp.exp(-2j * math.pi * b / whole * at)
    behind = xp.exp(-2j * math.pi * a / whole * (at + b))
    is_orthogonal = m.norm == "ortho" if m.orthogonalize is None else m.orthogonalize
    ends, components = _ENDS.get((m.op, type_), ((), ()))
    for end in ends:
        before[end] *= math.sqrt(0.5) if is_orthogonal else 0.5
    for component in components if is_orthogonal else ():
        behind[component] *= math.sqrt(0.5)
    precision = "complex128" if x.dtype == "float64" else "complex64"
    x = xp.moveaxis(x, axis, -1)[..., :n]
    before, behind = before[: x.shape[-1]].astype(precision), behind.astype(precision)
    y = tools.fft.fft(x * before, whole, -1)[..., :n] * behind
    return xp.moveaxis(y.real if m.op == "dct" else -y.imag, -1, axis)


def _factor(m: R2R, whole: int) -> float:
    if m.norm == "ortho":
        return 1 / math.sqrt(whole)
    return 1 / whole if (m.norm in (None, "backward")) == m.inverse else 1.0


def convolution(tools: Tools, m: Convolve, a: Any, b: Any) -> Any:
    """Return what a message asks for of the whole convolution, as a view of it."""
    axes = m.convolved_axes()
    cut = [slice(None)] * a.ndim
    for axis in axes:
        cut[axis] = window(m.mode, a.shape[axis], b.shape[axis])
    if m.correlate:
        back = tuple(slice(None, None, -1 if axis in axes else None) for axis in range(a.ndim))
        b = b[back].conj()
    convolve = convolved_in_blocks if m.method == "oa" else convolved
    return convolve(tools, a, b, axes)[tuple(cut)] if axes else a * b


def convolved(tools: Tools, a: Any, b: Any, axes: Sequence[int]) -> Any:
    """Return the whole convolution along axes, by transforms of padded operands; others broadcast.

    (Cooley, Lewis and Welch, IEEE Trans. Audio Electroacoust. 15 (1967) 79-84.)
    """
    fft, axes = tools.fft, tuple(axes)
    extents = [a.shape[axis] + b.shape[axis] - 1 for axis in axes]
    padded = tuple(scipy.fft.next_fast_len(n, real=True) for n in extents)
    there, back = (fft.rfftn, fft.irfftn) if a.dtype.kind == "f" else (fft.fftn, fft.ifftn)
    product = there(a, padded, axes) * there(b, padded, axes)
    cut = [slice(None)] * a.ndim
    for axis, n in zip(axes, extents, strict=True):
        cut[axis] = slice(n)
    return back(product, padded, axes)[tuple(cut)]


def convolved_in_blocks(tools: Tools, a: Any, b: Any, axes: Sequence[int]) -> Any:
    """Return the whole convolution, in blocks along the axis whose extents differ most.

    Blocks of the longer operand are convolved each, and added where they overlap (Stockham, Proc.
    AFIPS 28 (1966) 229-233).
    """
    xp = tools.arrays

    def ratio(axis: int) -> float:
        pair: tuple[int, int] = a.shape[axis], b.shape[axis]
        return max(pair) / min(pair)

    axis = max(axes, key=ratio)
    if ratio(axis) <= _BLOCK:
        return convolved(tools, a, b, axes)
    if a.shape[axis] < b.shape[axis]:
        a, b = b, a
    n, m = a.shape[axis], b.shape[axis]
    step = scipy.fft.next_fast_len(_BLOCK * m, real=True) - (m - 1)
    blocks = -(-n // step)
    a, b = xp.moveaxis(a, axis, 0), xp.moveaxis(b, axis, 0)[None]
    split = xp.zeros((blocks * step, *a.shape[1:]), a.dtype)
    split[:n] = a
    split = split.reshape(blocks, step, *a.shape[1:])
    # Behind the number of the block and the axis itself the others stand in their order.
    others = [1 + at + (at < axis) for at in axes if at != axis]
    parts = convolved(tools, split, b, [*others, 1])
    made = xp.zeros((blocks + 1, step, *parts.shape[2:]), a.dtype)
    made[:-1] += parts[:, :step]
    made[1:, : m - 1] += parts[:, step:]
    return xp.moveaxis(made.reshape(-1, *parts.shape[2:])[: n + m - 1], 0, axis)


def analytic(tools: Tools, x: Any, n: int, axis: int) -> Any:
    """Return the analytic signal: without negative frequencies, the positive ones twice.

    (Marple, IEEE Trans. Signal Process. 47 (1999) 2600-2603.)
    """
    xp, fft = tools.arrays, tools.fft
    there = xp.moveaxis(fft.fft(x, n, axis), axis, -1)
    there[..., 1 : (n + 1) // 2] *= 2
    there[..., n // 2 + 1 :] = 0
    return xp.moveaxis(fft.ifft(there, n, -1), -1, axis)
