"""Convolution, correlation and the analytic signal, by Fourier transforms."""

from typing import Any, ClassVar, Literal, TypeAlias, get_args

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE, SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function, named
from accel_lab.libraries.authoring.operand import describe, one_dtype, require_out, result
from accel_lab.libraries.authoring.options import Ints, Options
from accel_lab.libraries.authoring.shape import Integers
from accel_lab.libraries.authoring.shaped import Shaped, complex_of
from accel_lab.libraries.fft.transform import axis_from_0, require_integers, require_word

__all__ = [
    "Convolve",
    "Hilbert",
    "convolve",
    "correlate",
    "fftconvolve",
    "hilbert",
    "oaconvolve",
]

Mode: TypeAlias = Literal["full", "same", "valid"]
Method: TypeAlias = Literal["fft", "oa"]


class Convolve(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=184):
    """Convolve `a` with `b` along `axes`, all by default, or correlate them; the others broadcast.

    Of the whole `mode` "same" keeps the extents of `a` in its middle, and "valid" what is computed
    without zeros around. `method` "oa" transforms in blocks, which is faster if one is far longer.
    `correlate` reverses and conjugates `b` first.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    a: AccelRef
    b: AccelRef
    mode: Mode = "full"
    axes: Ints | None = None
    _: Options
    method: Method = "fft"
    correlate: bool = False
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the extents of this mode, in the operands' dtype."""
        a, b = self.a, self.b
        dtype = one_dtype(self, a, b)
        require_word(self, "mode", self.mode, get_args(Mode))
        require_word(self, "method", self.method, get_args(Method))
        require_integers(self, "axes", self.axes)
        if a.ndim != b.ndim:
            raise self._refusal("are to have equally many axes")
        axes = self.convolved_axes()
        if any(0 in (a.shape[axis], b.shape[axis]) for axis in axes):
            raise self._refusal(f"are to have at least one point along the axes {[*axes]}")
        shape = []
        for axis, (n, k) in enumerate(zip(a.shape, b.shape, strict=True)):
            if axis in axes:
                part = window(self.mode, n, k)
                shape.append(part.stop - part.start)
            elif n == k or 1 in (n, k):
                shape.append(k if n == 1 else n)
            else:
                raise self._refusal(f"do not broadcast along axis {axis}, which is none of axes")
        longer = {a.shape[axis] > b.shape[axis] for axis in axes if a.shape[axis] != b.shape[axis]}
        if self.mode == "valid" and len(longer) > 1:
            raise self._refusal('are of no "valid" mode: one is to be as long along each axis')
        spec = result(self, tuple(shape), dtype)
        require_out(self, self.out, spec, a, b)
        return spec

    def convolved_axes(self) -> tuple[int, ...]:
        """Return the axes along which it convolves, counted from 0."""
        given: Any = self.axes
        ndim = self.a.ndim
        if given is None:
            return tuple(range(ndim))
        try:
            chosen = tuple(axis_from_0(axis, ndim) for axis in given)
        except InvalidArgument as error:
            raise self._refusal(f"do not fit: {error}") from None
        if not chosen or len(set(chosen)) < len(chosen):
            raise self._refusal(f"need axes, each once, and not {[*given]}")
        return chosen

    def _refusal(self, why: str) -> InvalidArgument:
        return InvalidArgument(f"Convolve: a {describe(self.a)} and b {describe(self.b)} {why}")


def window(mode: Mode, n: int, k: int) -> slice:
    """Return what a mode keeps of the n + k - 1 elements along one axis."""
    if mode == "full":
        return slice(0, n + k - 1)
    if mode == "same":
        return slice((k - 1) // 2, (k - 1) // 2 + n)
    return slice(min(n, k) - 1, max(n, k))


class Hilbert(Shaped[AccelRef], frozen=True, tag=185):
    """Return the analytic signal of real `x` along an axis, cropped or padded to `n` points.

    Its real part is `x`, and its imaginary part the Hilbert transform of it.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    shapes: ClassVar = "(...)->?"
    x: AccelRef
    n: int | None = None
    axis: int = -1
    _: Options
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an axis that `x` does not have, and a number of points that is none."""
        x = self.x
        if type(self.axis) is not int or not -x.ndim <= self.axis < x.ndim:
            raise InvalidArgument(f"Hilbert: axis {self.axis!r} is none of x {describe(x)}")
        if self.n is not None and (type(self.n) is not int or self.n < 1):
            raise InvalidArgument(f"Hilbert: n must be an integer from 1, not {self.n!r}")

    def makes(self) -> Spec:
        """Return the shape with the axis' new extent, and the complex dtype."""
        shape = [*self.x.shape]
        if self.n is not None:
            shape[self.axis] = self.n
        return result(self, tuple(shape), complex_of(self.x.dtype))


convolve, hilbert = function(Convolve), function(Hilbert)


def _convolve(
    name: str, a: AccelRef, b: AccelRef, mode: Mode = "full", axes: Integers | None = None
) -> AccelRef:
    method: Any = "oa" if name.startswith("oa") else "fft"
    return convolve(a, b, mode, axes, method=method, correlate=name == "correlate")


_convolving = named(
    _convolve,
    """{text} along axes, all by default, as scipy.signal.{name}; does not block.

Raises:
    InvalidArgument, UnsupportedDtype: as `convolve`.
""",
)
fftconvolve = _convolving("fftconvolve", "Convolve two arrays by transforms of both,")
oaconvolve = _convolving("oaconvolve", "Convolve a long array with a short one, in blocks")
correlate = _convolving("correlate", "Correlate two arrays by transforms of both,")
