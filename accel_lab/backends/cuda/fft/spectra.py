"""What is made of transforms on cuda: series, convolutions, views; by CuPy around cuFFT."""

from collections.abc import Callable
from typing import Any

import cupy
from cupy.lib.stride_tricks import as_strided

from accel_lab.backends.spectra import Tools, analytic, convolution, real_to_real
from accel_lab.libraries.fft.convolution import Convolve, Hilbert
from accel_lab.libraries.fft.frequencies import Frequencies, Shift
from accel_lab.libraries.fft.layouts import Embedded, Interleaved
from accel_lab.libraries.fft.real_to_real import R2R
from accel_lab.libraries.fft.transform import Kind, frame

_COMPLEX = {"f": "complex64", "d": "complex128", "F": "complex64", "D": "complex128"}
_REAL = {"F": "float32", "D": "float64"}
Write = Callable[..., None]


class Transforms:
    """SciPy's functions on CuPy's arrays, by the plans of the backend; each makes a new array."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def fft(self, x: Any, n: int, axis: int) -> Any:
        """Transform one axis of `n` points."""
        return self._made("C2C", x, (n,), (axis,), inverse=False)

    def ifft(self, x: Any, n: int, axis: int) -> Any:
        """Transform one axis back."""
        return self._made("C2C", x, (n,), (axis,), inverse=True)

    def fftn(self, x: Any, s: Any, axes: Any) -> Any:
        """Transform several axes."""
        return self._made("C2C", x, s, axes, inverse=False)

    def ifftn(self, x: Any, s: Any, axes: Any) -> Any:
        """Transform several axes back."""
        return self._made("C2C", x, s, axes, inverse=True)

    def rfftn(self, x: Any, s: Any, axes: Any) -> Any:
        """Return half of the transform of a real array."""
        return self._made("R2C", x, s, axes, inverse=False)

    def irfftn(self, x: Any, s: Any, axes: Any) -> Any:
        """Return the real array of a half."""
        return self._made("C2R", x, s, axes, inverse=True)

    def _made(self, kind: Kind, x: Any, s: Any, axes: Any, *, inverse: bool) -> Any:
        dtype = _REAL[x.dtype.char] if kind == "C2R" else _COMPLEX[x.dtype.char]
        out = cupy.empty(frame(kind, x.shape, s, axes).shape, dtype)
        self._write(kind, (s, axes, None), x, out, inverse=inverse)
        return out


class CudaSpectra:
    """The part of `CudaFft` that asks nothing of cuFFT itself."""

    _tools: Tools

    def r2r(self, m: R2R, x: Any, out: Any) -> None:
        """Write the cosine or sine transform."""
        if out.size:
            out[...] = real_to_real(self._tools, m, x)

    def convolve(self, m: Convolve, a: Any, b: Any, out: Any) -> None:
        """Write the convolution or the correlation."""
        if out.size:
            out[...] = convolution(self._tools, m, a, b)

    def hilbert(self, m: Hilbert, x: Any, out: Any) -> None:
        """Write the analytic signal."""
        if out.size:
            out[...] = analytic(self._tools, x, out.shape[m.axis], m.axis)

    def frequencies(self, m: Frequencies, out: Any) -> None:
        """Write the frequencies (cupy.fft.fftfreq, rfftfreq)."""
        out[...] = (cupy.fft.rfftfreq if m.half else cupy.fft.fftfreq)(m.n, m.d)

    def shift(self, m: Shift, x: Any, out: Any) -> None:
        """Write the elements at their new places (cupy.fft.fftshift, ifftshift)."""
        if out.size:
            move = cupy.fft.ifftshift if m.inverse else cupy.fft.fftshift
            out[...] = move(x, m.axes) if x.ndim and m.axes != () else x

    def embedded(self, m: Embedded, x: Any) -> Any:
        """Return the view (cupy.lib.stride_tricks.as_strided)."""
        steps = [step * x.strides[0] for step in m.steps()]
        return as_strided(x[m.offset :], m.makes().shape, steps)

    def interleaved(self, m: Interleaved, x: Any) -> Any:
        """Return the view."""
        return m.view(x, x.data.ptr)
