"""BLAS on wgpu: products in tiles, and sums that are folded in parts.

Narrow floats are computed in float32 and rounded once.
"""

from typing import TYPE_CHECKING, Any

from accel_lab.backends.wgpu.array.reduction import fold_terms, places
from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.products import combine, multiply
from accel_lab.backends.wgpu.kernels.types import cast, type_of
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.library import (
    Asum,
    Axpy,
    AxpyBy,
    Dot,
    GemmGrouped,
    Gemv,
    GemvBy,
    Iamax,
    Iamin,
    Nrm2,
    Product,
    ProductBy,
    Scal,
    ScalBy,
    Swap,
)

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice

_NARROW = frozenset({"float16", "bfloat16"})


class WgpuBlas:
    """Enqueues on the device's queue; used by the dispatcher thread."""

    def __init__(self, device: "WgpuDevice") -> None:
        self._device = device

    def gemm(
        self, m: Product | ProductBy, a: Any, b: Any, c: Any, out: Any, alpha: Any, beta: Any
    ) -> None:
        """Write alpha op(a) @ op(b) + beta c, for one product or a batch."""
        multiply(self._device, _turned(a, m.trans_a), _turned(b, m.trans_b), out, alpha, c, beta)

    gemm_strided_batched = gemm

    def gemm_by(
        self, m: ProductBy, a: Any, b: Any, alpha: Any, c: Any, beta: Any, out: Any
    ) -> None:
        """Write alpha op(a) @ op(b) + beta c, with factors of the device's."""
        self.gemm(m, a, b, c, out, alpha, 0 if beta is None else beta)

    gemm_strided_batched_by = gemm_by

    def gemm_grouped(
        self, m: GemmGrouped, a: list[Any], b: list[Any], out: list[Any], alpha: Number
    ) -> None:
        """Write alpha op(a[i]) @ op(b[i]), one product after the other."""
        for left, right, to in zip(a, b, out, strict=True):
            left, right = _turned(left, m.trans_a), _turned(right, m.trans_b)  # noqa: PLW2901
            multiply(self._device, left, right, to, alpha)

    def gemv(
        self, m: Gemv | GemvBy, a: Any, x: Any, y: Any, out: Any, alpha: Any, beta: Any
    ) -> None:
        """Write alpha op(a) @ x + beta y."""
        a, dtype = _turned(a, m.trans), _wide(x.name)
        rows, each = a.shape
        if not rows:
            return
        term = _product(cast("a(n)", a.name, dtype), cast("x(k)", x.name, dtype), dtype)
        sums = fold_terms(self._device, "sum", {"a": a, "x": x}, rows, each, dtype, term)
        combine(self._device, sums, out, alpha, y, beta)

    def gemv_by(self, m: GemvBy, a: Any, x: Any, alpha: Any, y: Any, beta: Any, out: Any) -> None:
        """Write alpha op(a) @ x + beta y, with factors of the device's."""
        self.gemv(m, a, x, y, out, alpha, 0 if beta is None else beta)

    def axpy(self, _: Axpy | AxpyBy, x: Any, y: Any, out: Any, alpha: Any) -> None:
        """Write alpha x + y."""
        kind, job = type_of(_wide(x.name)), Job(self._device)
        for name, array in (("x", x), ("y", y), ("z", out)):
            job.array(name, array)
        by = self._factor(job, alpha, x.name)
        scaled = _product(by, "x(i)", x.name)
        total = f"({scaled} || y(i))" if kind.kind == "b" else f"({scaled} + y(i))"
        job.run(f"set_z(i, {type_of(x.name).rounded.format(total)});", out.size)

    def axpy_by(self, m: AxpyBy, x: Any, y: Any, alpha: Any, out: Any) -> None:
        """Write alpha x + y, with a factor of the device's."""
        self.axpy(m, x, y, out, alpha)

    def scal(self, _: Scal | ScalBy, x: Any, out: Any, alpha: Any) -> None:
        """Write alpha x."""
        job = Job(self._device)
        job.array("x", x)
        job.array("z", out)
        scaled = _product(self._factor(job, alpha, x.name), "x(i)", x.name)
        job.run(f"set_z(i, {type_of(x.name).rounded.format(scaled)});", out.size)

    def scal_by(self, m: ScalBy, x: Any, alpha: Any, out: Any) -> None:
        """Write alpha x, with a factor of the device's."""
        self.scal(m, x, out, alpha)

    def dot(self, _: Dot, x: Any, y: Any, out: Any) -> None:
        """Write the sum of products."""
        dtype = _wide(x.name)
        term = _product(cast("x(n)", x.name, dtype), cast("y(n)", y.name, dtype), dtype)
        sums = fold_terms(self._device, "sum", {"x": x, "y": y}, 1, x.size, dtype, term)
        combine(self._device, sums, out)

    def nrm2(self, _: Nrm2, x: Any, out: Any) -> None:
        """Write the norm, of elements scaled by the largest so that no square overflows."""
        dtype = _wide(x.name)
        kind = type_of(dtype).value
        size = f"bare_{kind}({cast('x(n)', x.name, dtype)})"
        whole = {"x": x}
        most = fold_terms(self._device, "max", whole, 1, x.size, dtype, size) if x.size else None
        if most is None:
            combine(self._device, self._device.empty((1,), dtype), out, 0)
            return
        scaled = f"({size} / most(0u))"
        term = f"({scaled} * {scaled})"
        arrays = {"x": x, "most": most}
        sums = fold_terms(self._device, "sum", arrays, 1, x.size, dtype, term)
        job = Job(self._device)
        for name, array in (("most", most), ("sum", sums), ("z", out)):
            job.array(name, array)
        root = "most(0u) * sqrt(sum(0u))"
        plain = f"most(0u) == {kind}(0) || is_inf_{kind}(most(0u)) || is_nan_{kind}(most(0u))"
        value = cast(f"select({root}, most(0u), {plain})", dtype, out.name)
        job.run(f"set_z(i, {value});", 1)

    def asum(self, _: Asum, x: Any, out: Any) -> None:
        """Write the sum of magnitudes."""
        dtype = _wide(x.name)
        size = f"bare_{type_of(dtype).value}({cast('x(n)', x.name, dtype)})"
        sums = fold_terms(self._device, "sum", {"x": x}, 1, x.size, dtype, size)
        combine(self._device, sums, out)

    def iamax(self, _: Iamax, x: Any, out: Any) -> None:
        """Write the index of the largest magnitude."""
        places(self._device, "argmax", self._magnitudes(x), 1, x.size, out)

    def iamin(self, _: Iamin, x: Any, out: Any) -> None:
        """Write the index of the least magnitude."""
        places(self._device, "argmin", self._magnitudes(x), 1, x.size, out)

    def swap(self, _: Swap, x: Any, y: Any) -> None:
        """Exchange the elements."""
        held = x.copy()
        self._device.copy(y, x)
        self._device.copy(held, y)

    def _magnitudes(self, x: Any) -> Any:
        kind = type_of(x.name)
        made, job = self._device.empty(x.shape, x.name), Job(self._device)
        job.array("x", x)
        job.array("y", made)
        job.run(f"set_y(i, bare_{kind.value}(x(i)));", x.size)
        return made

    def _factor(self, job: Job, alpha: Any, dtype: str) -> str:
        """Return how a job reads a factor, a number or an array of one element."""
        if hasattr(alpha, "block"):
            job.array("alpha", alpha.reshape((1,)))
            return "alpha(0u)"
        job.number("alpha", alpha, _wide(dtype))
        return "alpha()"


def _product(a: str, b: str, dtype: str) -> str:
    return f"({a} && {b})" if dtype == "bool" else f"({a} * {b})"


def _turned(a: Any, trans: str) -> Any:
    """Return op(a); real numbers are their own conjugates."""
    return a if trans == "n" else a.like(a.layout.swapaxes(-1, -2))


def _wide(dtype: str) -> str:
    """Return in what is computed."""
    return "float32" if dtype in _NARROW else dtype
