"""Level 1 of BLAS on the host beside sums and norms, and what works element by element."""

import math
from typing import Any

import numpy as np

from accel_lab.backends.host.blas.products import turned
from accel_lab.backends.host.blas.routines import routine
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.library import (
    Asum,
    Dgmm,
    Gbmv,
    Geam,
    Ger,
    Iamax,
    Iamin,
    Rot,
    Rotg,
    Swap,
)

_CHUNK = 1 << 30  # elements; SciPy's BLAS counts in 32 bits


class HostVectors:
    """Exchange, extremes, rotations; outer products, bands, sums and scalings of matrices."""

    def swap(self, _: Swap, x: Any, y: Any) -> None:
        """Exchange the elements."""
        held = x.copy()
        x[...] = y
        y[...] = held

    @np.errstate(all="ignore")
    def asum(self, _: Asum, x: Any, out: Any) -> None:
        """Write the sum of magnitudes (BLAS's asum)."""
        flat = x.reshape(-1)
        names = {"F": "scasum", "D": "dzasum"}
        asum = routine(names.get(flat.dtype.char, "asum"), flat.dtype)
        chunks = range(0, flat.size, _CHUNK)
        out[...] = sum(asum(flat[start : start + _CHUNK]) for start in chunks)

    @np.errstate(all="ignore")
    def iamax(self, _: Iamax, x: Any, out: Any) -> None:
        """Write the index of the largest magnitude."""
        out[...] = np.argmax(_magnitudes(x))

    @np.errstate(all="ignore")
    def iamin(self, _: Iamin, x: Any, out: Any) -> None:
        """Write the index of the least magnitude."""
        out[...] = np.argmin(_magnitudes(x))

    @np.errstate(all="ignore")
    def rot(self, _: Rot, x: Any, y: Any, out: Any, c: Number, s: Number) -> None:
        """Write c x + s y and c y - conj(s) x."""
        cosine = c.real
        np.add(np.multiply(x, cosine), np.multiply(y, s), out=out.x)
        conjugate = s.conjugate()
        np.subtract(np.multiply(y, cosine), np.multiply(x, conjugate), out=out.y)

    @np.errstate(all="ignore")
    def rotg(self, _: Rotg, a: Any, b: Any, out: Any) -> None:
        """Write the rotation, its hypotenuse formed without overflow on the way."""
        first, second = a.item(), b.item()
        norm = math.hypot(first.real, first.imag, second.real, second.imag)
        if norm == 0:
            out.c[...], out.s[...], out.r[...] = 1, 0, 0
        elif isinstance(first, complex):
            size = math.hypot(first.real, first.imag)
            phase = first / size if size else 1.0
            out.c[...], out.r[...] = size / norm, phase * norm
            out.s[...] = phase * (second.conjugate() / norm)
        else:
            signed = math.copysign(norm, first if abs(first) > abs(second) else second)
            out.c[...], out.s[...], out.r[...] = first / signed, second / signed, signed

    @np.errstate(all="ignore")
    def ger(self, m: Ger, x: Any, y: Any, a: Any, out: Any, alpha: Number) -> None:
        """Write alpha x yᵀ + a, or with the conjugates of y."""
        if alpha == 0:
            out[...] = 0 if a is None else a
            return
        row = y.conj() if m.conjugate else y
        scaled = x if alpha == 1 else np.multiply(x, alpha)
        product = np.multiply(scaled[:, None], row)
        out[...] = product if a is None else np.add(product, a, out=product)

    @np.errstate(all="ignore")
    def gbmv(self, m: Gbmv, a: Any, x: Any, y: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha op(A) @ x + beta y, one diagonal after the other."""
        (rows, diagonals), columns = a.shape, m.columns()
        total = np.zeros(out.shape, a.dtype)
        if m.trans == "c":
            a = a.conj()
        for at in range(diagonals if alpha else 0):
            right = at - m.kl  # of the main diagonal
            first, last = max(0, -right), min(rows, columns - right)
            if first >= last:
                continue
            down, across = slice(first, last), slice(first + right, last + right)
            made, taken = (down, across) if m.trans == "n" else (across, down)
            total[made] += a[down, at] * x[taken]
        if alpha != 1:
            np.multiply(total, alpha, out=total)
        out[...] = total if y is None else np.add(total, np.multiply(y, beta), out=total)

    @np.errstate(all="ignore")
    def geam(self, m: Geam, a: Any, b: Any, out: Any, alpha: Number, beta: Number) -> None:
        """Write alpha op(a) + beta op(b)."""
        terms = [
            np.multiply(turned(one, trans), factor)
            for one, trans, factor in ((a, m.trans_a, alpha), (b, m.trans_b, beta))
            if factor
        ]
        out[...] = sum(terms)

    @np.errstate(all="ignore")
    def dgmm(self, m: Dgmm, x: Any, a: Any, out: Any) -> None:
        """Write diag(x) @ a or a @ diag(x)."""
        np.multiply(a, x[:, None] if m.side == "l" else x, out=out)


def _magnitudes(x: Any) -> Any:
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)
