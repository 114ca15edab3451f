"""Fourier transforms on wgpu, of any number of points, and what only moves their elements."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import as_strided

from accel_lab.backends.wgpu.fft.lines import Lines
from accel_lab.backends.wgpu.fft.stockham import pairs_of, part_of
from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.compute.arrays.dtypes import complex_of, is_complex, real_of
from accel_lab.libraries.fft.frequencies import Frequencies, Shift
from accel_lab.libraries.fft.layouts import Embedded, Interleaved
from accel_lab.libraries.fft.library import C2C, C2R, R2C
from accel_lab.libraries.fft.transform import Transform

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice


class WgpuFft:
    """Enqueues on the device's queue; used by the dispatcher thread.

    The way back is the way there with the parts of the numbers exchanged, before and after it.
    """

    def __init__(self, device: "WgpuDevice") -> None:
        self._device = device
        self._lines = Lines(device)

    def c2c(self, m: C2C, x: Any, out: Any) -> None:
        """Write the transform."""
        if not out.size:
            return
        frame = m.frame()
        work = self._load(x, frame.source, swap=m.inverse)
        for axis in frame.axes:
            work = self._lines.transform(work, axis)
        self._store(m, work, out, swap=m.inverse)

    def r2c(self, m: R2C, x: Any, out: Any) -> None:
        """Write half of the transform: that of the last axis is cut before the others follow."""
        if not out.size:
            return
        frame = m.frame()
        *others, last = frame.axes
        work = self._lines.transform(self._load(x, frame.source, swap=False), last)
        work = work[(slice(None),) * last + (slice(out.shape[last]),)]
        for axis in others:
            work = self._lines.transform(work, axis)
        self._store(m, work, out, swap=False)

    def c2r(self, m: C2R, x: Any, out: Any) -> None:
        """Write the real numbers: the last axis is made whole after the others."""
        if not out.size:
            return
        frame = m.frame()
        *others, last = frame.axes
        work = self._load(x, frame.source, swap=True)
        for axis in others:
            work = self._lines.transform(work, axis)
        work = self._lines.transform(self._mirrored(work, last, out.shape), last)
        self._store(m, work, out, swap=True)

    def trim(self) -> None:
        """Drop what the host has computed for each length."""
        self._lines.trim()

    def frequencies(self, m: Frequencies, out: Any) -> None:
        """Write the frequencies, which the host computes."""
        make = scipy.fft.rfftfreq if m.half else scipy.fft.fftfreq
        self._device.upload(out, 0, make(m.n, m.d).astype(out.dtype).tobytes())

    def shift(self, m: Shift, x: Any, out: Any) -> None:
        """Write the elements at their new places: along each axis the two parts change places."""
        given: Any = range(x.ndim) if m.axes is None else m.axes
        axes = [axis % x.ndim for axis in given]
        for parts in itertools.product((False, True), repeat=len(axes)):
            source, target = [slice(None)] * x.ndim, [slice(None)] * x.ndim
            for axis, is_behind in zip(axes, parts, strict=True):
                n = x.shape[axis]
                first = n // 2 if m.inverse else n - n // 2
                source[axis] = slice(first, n) if is_behind else slice(first)
                target[axis] = slice(n - first) if is_behind else slice(n - first, n)
            self._device.copy(x[tuple(source)], out[tuple(target)])

    def embedded(self, m: Embedded, x: Any) -> Any:
        """Return the view."""
        steps = [step * x.strides[0] for step in m.steps()]
        return x.like(as_strided(x.layout[m.offset :], m.makes().shape, steps))

    def interleaved(self, m: Interleaved, x: Any) -> Any:
        """Return the view."""
        return x.like(m.view(x.layout, x.layout.__array_interface__["data"][0]))

    def _load(self, x: Any, shape: tuple[int, ...], *, swap: bool) -> Any:
        """Return complex numbers of a shape: `x` cropped, or with zeros behind it."""
        dtype = x.name if is_complex(x.name) else complex_of(x.name)
        made, pair = self._device.empty(shape, dtype), f"vec2<{part_of(dtype)}>"
        if x.shape != shape:
            zeros = Job(self._device)
            zeros.array("y", made, pairs_of(dtype))
            zeros.run(f"set_y(i, {pair}());", made.size)
        common = tuple(slice(min(both)) for both in zip(x.shape, shape, strict=True))
        part, to = (x[common], made[common]) if x.shape != shape else (x, made)
        job = Job(self._device)
        job.array("x", part, pairs_of(dtype) if is_complex(x.name) else None)
        job.array("y", to, pairs_of(dtype))
        value = "x(i)" if is_complex(x.name) else f"{pair}(x(i), 0)"
        job.run(f"set_y(i, {value}{'.yx' if swap else ''});", to.size)
        return made

    def _mirrored(self, x: Any, axis: int, shape: tuple[int, ...]) -> Any:
        """Return whole lines: behind the half are the conjugates; here the parts are exchanged."""
        made, job = self._device.empty(shape, x.name), Job(self._device)
        pair = f"vec2<{part_of(x.name)}>"
        job.array("x", x, pairs_of(x.name))
        job.array("y", made, pairs_of(x.name))
        inner = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        for name, number in (("points", shape[axis]), ("half", x.shape[axis]), ("inner", inner)):
            job.count(name, number)
        job.run(
            "let e = i / inner() % points(); let is_kept = e < half();\n"
            "let at = select(points() - e, e, is_kept);\n"
            "var v = x((i / inner() / points() * half() + at) * inner() + i % inner());\n"
            f"if (!is_kept) {{ v = {pair}(-v.x, v.y); }}\n"
            f"if (e == 0u || e * 2u == points()) {{ v = {pair}(0, v.y); }}\n"
            "set_y(i, v);",
            made.size,
        )
        return made

    def _store(self, m: Transform, x: Any, out: Any, *, swap: bool) -> None:
        """Write the numbers times the factor, or of real results their real parts."""
        factor = m.frame().factor(m.norm, inverse=swap)
        job = Job(self._device)
        job.array("x", x, pairs_of(x.name))
        job.array("y", out, pairs_of(out.name) if is_complex(out.name) else None)
        job.number("factor", factor, real_of(x.name))
        part = ".yx" if swap else ""
        if not is_complex(out.name):
            part = ".y" if swap else ".x"
        job.run(f"set_y(i, x(i){part} * factor());", out.size)
