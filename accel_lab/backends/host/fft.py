"""Fourier transforms on the host, by SciPy's pocketfft."""

from typing import Any

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import as_strided

from accel_lab.backends.spectra import Tools, analytic, convolution
from accel_lab.libraries.fft.convolution import Convolve, Hilbert
from accel_lab.libraries.fft.frequencies import Frequencies, Shift
from accel_lab.libraries.fft.layouts import Embedded, Half, Interleaved, Padded
from accel_lab.libraries.fft.library import C2C, C2R, R2C
from accel_lab.libraries.fft.real_to_real import R2R

_TOOLS = Tools(np, scipy.fft)


class HostFft:
    """Calls SciPy at once: on the host, what is enqueued is done."""

    @np.errstate(all="ignore")
    def c2c(self, m: C2C, x: Any, out: Any) -> None:
        """Write the transform (scipy.fft.fftn, ifftn)."""
        transform = scipy.fft.ifftn if m.inverse else scipy.fft.fftn
        np.copyto(out, transform(x, *m.given))

    @np.errstate(all="ignore")
    def r2c(self, m: R2C, x: Any, out: Any) -> None:
        """Write half of the transform (scipy.fft.rfftn)."""
        np.copyto(out, scipy.fft.rfftn(x, *m.given))

    @np.errstate(all="ignore")
    def c2r(self, m: C2R, x: Any, out: Any) -> None:
        """Write the real numbers (scipy.fft.irfftn)."""
        np.copyto(out, scipy.fft.irfftn(x, *m.given))

    @np.errstate(all="ignore")
    def r2r(self, m: R2R, x: Any, out: Any) -> None:
        """Write the cosine or sine transform (scipy.fft.dctn, dstn and their inverses)."""
        transform = getattr(scipy.fft, f"{'i' * m.inverse}{m.op}n")
        if x.dtype.kind == "c":  # SciPy forgets `orthogonalize` there
            made = [
                transform(part, m.variant, *m.given, orthogonalize=m.orthogonalize)
                for part in (x.real, x.imag)
            ]
            out.real, out.imag = made
        else:
            np.copyto(out, transform(x, m.variant, *m.given, orthogonalize=m.orthogonalize))

    @np.errstate(all="ignore")
    def convolve(self, m: Convolve, a: Any, b: Any, out: Any) -> None:
        """Write the convolution or the correlation."""
        if out.size:
            np.copyto(out, convolution(_TOOLS, m, a, b))

    @np.errstate(all="ignore")
    def hilbert(self, m: Hilbert, x: Any, out: Any) -> None:
        """Write the analytic signal."""
        if out.size:
            np.copyto(out, analytic(_TOOLS, x, out.shape[m.axis], m.axis))

    def frequencies(self, m: Frequencies, out: Any) -> None:
        """Write the frequencies (scipy.fft.fftfreq, rfftfreq)."""
        make = scipy.fft.rfftfreq if m.half else scipy.fft.fftfreq
        np.copyto(out, make(m.n, m.d), casting="same_kind")

    def shift(self, m: Shift, x: Any, out: Any) -> None:
        """Write the elements at their new places (numpy.fft.fftshift, ifftshift)."""
        move: Any = np.fft.ifftshift if m.inverse else np.fft.fftshift
        np.copyto(out, move(x, m.axes) if x.ndim and m.axes != () else x)

    def embedded(self, m: Embedded, x: Any) -> Any:
        """Return the view (numpy.lib.stride_tricks.as_strided)."""
        steps = [step * x.strides[0] for step in m.steps()]
        return as_strided(x[m.offset :], m.makes().shape, steps)

    def interleaved(self, m: Interleaved, x: Any) -> Any:
        """Return the view."""
        return m.view(x, x.ctypes.data)

    @np.errstate(all="ignore")
    def padded(self, m: Padded, x: Any, out: Any) -> None:
        """Write the transform of padded lines (scipy.fft.rfftn, irfftn)."""
        if not out.size:
            return
        if m.inverse:
            pairs: Any = np.ascontiguousarray(x).view(_COMPLEX[x.dtype.char])
            s = (*x.shape[x.ndim - m.ndim : -1], m.points)
            out[..., : m.points] = scipy.fft.irfftn(pairs, s, m.axes, m.norm)
            out[..., m.points :] = 0
        else:
            made = scipy.fft.rfftn(x[..., : m.points], None, m.axes, m.norm)
            np.copyto(out, np.ascontiguousarray(made).view(x.dtype))

    @np.errstate(all="ignore")
    def half(self, m: Half, x: Any, out: Any) -> None:
        """Write the transform, computed in single precision and rounded once."""
        if not out.size:
            return
        wide: Any = np.ascontiguousarray(x, np.float32)
        axes = tuple(range(-m.ndim, 0))
        if m.form == "r2c":
            made = scipy.fft.rfftn(wide, None, axes, m.norm)
        else:
            pairs = wide.view(np.complex64)[..., 0]
            if m.form == "c2r":
                made = scipy.fft.irfftn(pairs, m.lengths, axes, m.norm)
            else:
                transform = scipy.fft.ifftn if m.inverse else scipy.fft.fftn
                made = transform(pairs, None, axes, m.norm)
        if m.form != "c2r":
            made = np.ascontiguousarray(made)[..., None].view(np.float32)
        np.copyto(out, made, casting="unsafe")  # NumPy takes bfloat16 for no kind of float


_COMPLEX = {"f": np.complex64, "d": np.complex128}
