"""Transforms of all lines along an axis: Stockham's passes, or Bluestein's sums by longer ones."""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from accel_lab.backends.wgpu.fft.stockham import enqueue_pass, pairs_of, part_of, radices_of
from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.compute.arrays.dtypes import numpy_dtype

MOST_KEPT = 1 << 22
"""How many numbers the tables have that are kept."""


class Lines:
    """Transforms forwards, without a factor; used by the dispatcher thread."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._tables: OrderedDict[tuple[str, int, str], Any] = OrderedDict()

    def transform(self, x: Any, axis: int) -> Any:
        """Return the transform of complex numbers along an axis; `x` itself, of one point."""
        n = x.shape[axis]
        if n == 1 or not x.size:
            return x
        inner = math.prod(x.shape[axis + 1 :])
        radices = radices_of(n)
        if radices is None:
            return self._by_a_longer_one(x, axis, inner)
        roots = self._table("roots", n, x.name, _roots)
        done = 1
        for radix in radices:
            made = self._device.empty(x.shape, x.name)
            enqueue_pass(self._device, x, made, roots, radix, done, n, inner)
            x, done = made, done * radix
        return x

    def _by_a_longer_one(self, x: Any, axis: int, inner: int) -> Any:
        """Bluestein: jk = (j**2 + k**2 - (k - j)**2) / 2, so it is a convolution with a chirp."""
        n, name = x.shape[axis], x.name
        long = longer(n)
        chirp = self._table("chirp", n, name, _chirp)
        spectrum = self._table("spectrum", n, name, _spectrum)
        shape = (*x.shape[:axis], long, *x.shape[axis + 1 :])
        times, none = f"times_{part_of(name)}", f"vec2<{part_of(name)}>()"
        place = "let e = i / inner() % makes();"
        line = "let at = (i / inner() / makes() * given() + e) * inner() + i % inner();"
        wide = self._device.empty(shape, name)
        text = (
            f"{place} {line}\n"
            f"var v = {none}; if (e < given()) {{ v = {times}(x(at), factor(e)); }}\nset_y(i, v);"
        )
        self._run(text, x, chirp, wide, n, long, inner)
        wide = self.transform(wide, axis)
        back = self._device.empty(shape, name)
        # The way back is the way there with the parts exchanged, before and after it.
        text = f"{place} set_y(i, {times}(x(i), factor(e)).yx);"
        self._run(text, wide, spectrum, back, long, long, inner)
        back = self.transform(back, axis)
        made = self._device.empty(x.shape, name)
        text = f"{place} {line}\nset_y(i, {times}(x(at).yx, factor(e)));"
        self._run(text, back, chirp, made, long, n, inner)
        return made

    def _run(self, text: str, x: Any, w: Any, y: Any, given: int, makes: int, inner: int) -> None:
        job = Job(self._device)
        for name, array in (("x", x), ("factor", w), ("y", y)):
            job.array(name, array, pairs_of(y.name))
        for name, number in (("given", given), ("makes", makes), ("inner", inner)):
            job.count(name, number)
        job.run(text, y.size)

    def trim(self) -> None:
        """Drop the tables."""
        self._tables.clear()

    def _table(self, name: str, n: int, dtype: str, make: Callable[[int], Any]) -> Any:
        """Return numbers that the host has computed in double precision."""
        key = name, n, dtype
        found = self._tables.get(key)
        if found is None:
            values = make(n).astype(numpy_dtype(dtype))
            found = self._device.empty(values.shape, dtype)
            self._device.upload(found, 0, values.tobytes())
            self._tables[key] = found
            while len(self._tables) > 1 and sum(x.size for x in self._tables.values()) > MOST_KEPT:
                self._tables.popitem(last=False)
        self._tables.move_to_end(key)
        return found


def longer(n: int) -> int:
    """Return the power of two at which lines of n points are transformed, at least 2 n - 1."""
    return 1 << (2 * n - 2).bit_length()


def _roots(n: int) -> Any:
    return _turned(np.arange(n), n)


def _chirp(n: int) -> Any:
    """Return exp(-pi i k**2 / n), the squares modulo 2 n: large angles lose digits."""
    k = np.arange(n, dtype=np.int64)
    return _turned(k * k % (2 * n), 2 * n)


def _spectrum(n: int) -> Any:
    """Return the transform of the chirp's conjugate, and the factor of the way back."""
    long = longer(n)
    around = np.zeros(long, np.complex128)
    around[:n] = np.conj(_chirp(n))
    around[long - n + 1 :] = around[1:n][::-1]
    return scipy.fft.fft(around) / long


def _turned(k: Any, n: int) -> Any:
    angle = -2 * np.pi * k / n
    return np.cos(angle) + 1j * np.sin(angle)
