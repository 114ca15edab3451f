"""Arrays on wgpu: views by NumPy's own reckoning, and kernels of generated WGSL."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from accel_lab.backends.wgpu.array.fused import Fused
from accel_lab.backends.wgpu.array.ordering import WgpuOrdering
from accel_lab.backends.wgpu.array.reduction import reduce
from accel_lab.backends.wgpu.kernels.elementwise import compute
from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.lacking import lacks
from accel_lab.backends.wgpu.kernels.products import multiply
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.fusion.program import Program, Step
from accel_lab.libraries.array.joining import Concatenate
from accel_lab.libraries.array.library import Cast, Copy, Full, Reshape, Slice, Transpose, Zeros
from accel_lab.libraries.array.making import Arange, Eye
from accel_lab.libraries.array.reduction import Reduce
from accel_lab.libraries.array.shaping import Broadcast, Diagonal, Triangle
from accel_lab.libraries.authoring.operand import Number

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice


class WgpuArray(WgpuOrdering):
    """Enqueues on the device's queue; used by the dispatcher thread."""

    def __init__(self, device: "WgpuDevice") -> None:
        super().__init__(device)
        self.fused = Fused(device)
        self._programs: dict[tuple[Any, ...], Program] = {}

    def statistics(self) -> Mapping[str, int]:
        """Count kernels and submissions, and tell what the adapter limits; any thread."""
        device = self._device
        return {
            "kernels": len(device.kernels),
            "submissions": device.queue.submitted,
            "bytes a binding at most": device.most_bound,
            "buffers a kernel at most": device.most_buffers,
        }

    def zeros(self, _: Zeros, out: Any) -> None:
        """Write zeros."""
        self._fill(out, bytes(out.dtype.itemsize))

    def full(self, m: Full, out: Any, value: Number) -> None:
        """Write the value, rounded to the dtype as NumPy does."""
        with np.errstate(all="ignore"):
            self._fill(out, np.asarray(value, numpy_dtype(m.dtype)).tobytes())

    def copy(self, _: Copy | Reshape, x: Any, out: Any) -> None:
        """Copy `x` into `out` of the same shape and dtype; nothing, where they are one array."""
        if out is not x:
            self._device.copy(x, out)

    def cast(self, _: Cast, x: Any, out: Any) -> None:
        """Convert `x` into `out`, rounding to nearest."""
        self._convert(x, out)

    def slice(self, m: Slice, x: Any) -> Any:
        """Return a view by basic indexing."""
        return x[m.entries]

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any | None:
        """Return a view, or None where NumPy would have to copy."""
        try:
            return x.like(x.layout.reshape(shape, copy=False))
        except ValueError:
            return None

    def transpose(self, m: Transpose, x: Any) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(m.order)

    def diagonal(self, m: Diagonal, x: Any) -> Any:
        """Return a view."""
        offset = max(-x.shape[m.axis1], min(m.offset, x.shape[m.axis2]))
        return x.like(x.layout.diagonal(offset, m.axis1, m.axis2))

    def apply(
        self,
        op: str,
        operands: tuple[Any, ...],
        dtypes: tuple[str, ...],
        out: Any,
        *,
        dtype: str,
    ) -> None:
        """Write NumPy's function `op`."""
        if op == "matmul":
            left, right = operands
            self._matmul(left, right, out)
            return
        arrays = [x for x, kind in zip(operands, dtypes, strict=True) if kind]
        numbers = [x for x, kind in zip(operands, dtypes, strict=True) if not kind]
        if any(isinstance(number, complex) for number in numbers):
            raise lacks(f"wgpu has no {op} of complex numbers")
        key = op, dtypes, tuple(map(type, numbers)), dtype
        program = self._programs.get(key)
        if program is None:
            places: list[int] = []
            read = given = 0
            for kind in dtypes:
                places.append(read if kind else -1 - given)
                read, given = read + bool(kind), given + (not kind)
            steps = (Step(op, tuple(places), dtype),)
            kinds = tuple(type(number).__name__ for number in numbers)
            program = Program(tuple(filter(None, dtypes)), kinds, steps, (0,))
            self._programs[key] = program
        compute(self._device, program, arrays, numbers, [out])

    def reduce(self, m: Reduce, x: Any, out: Any) -> None:
        """Write a reduction, of narrow floats in float32 and rounded once."""
        reduce(self._device, m, x, out)

    def concatenate(self, m: Concatenate, xs: list[Any], out: Any) -> None:
        """Copy each array to its place."""
        for x, place in m.places(xs):
            self._convert(x, out[place])

    def arange(self, m: Arange, out: Any) -> None:
        """Write start + i * step, of integers modulo 2**64, else in float64."""
        count = m.count
        if not count:
            return
        # On the host: NumPy rounds the product and the sum, and a kernel may join the two.
        if out.dtype.kind in "iu":
            made = np.arange(count, dtype=np.uint64) * np.uint64(m.step % 2**64)
            whole = (made + np.uint64(m.start % 2**64)).astype(out.dtype)
        else:
            whole = np.arange(count, dtype=np.float64) * float(m.step) + float(m.start)
        if m.last is not None:
            whole[-1:] = m.last
        with np.errstate(all="ignore"):
            self._device.upload(out, 0, whole.astype(out.dtype).tobytes())

    def eye(self, m: Eye, out: Any) -> None:
        """Write zeros, and ones on a diagonal."""
        self._fill(out, bytes(out.dtype.itemsize))
        rows, columns = out.shape
        if -rows < m.k < columns:
            one = np.ones((), out.dtype).tobytes()
            self._fill(out.like(out.layout.diagonal(m.k)), one)

    def broadcast(self, _: Broadcast, x: Any, out: Any) -> None:
        """Write `x` along every axis."""
        self._device.copy(x.broadcast_to(out.shape), out)

    def triangle(self, m: Triangle, x: Any, out: Any) -> None:
        """Write one triangle and zeros."""
        rows, columns = x.shape[-2:]
        k = max(-rows - 1, min(m.k, columns + 1))
        job = Job(self._device)
        job.array("x", x, moved=True)
        job.array("y", out, moved=True)
        for name, number in (("rows", rows), ("columns", columns), ("k", k)):
            job.count(name, number)
        job.run(
            "let right = i32(i % columns()) - i32(i / columns() % rows()) - i32(k());\n"
            f"var v = x(i); if (right {'<' if m.upper else '>'} 0) {{ v = v ^ v; }}\n"
            "set_y(i, v);",
            out.size,
        )

    def _matmul(self, a: Any, b: Any, out: Any) -> None:
        left = a if a.ndim > 1 else a.reshape((1, a.size))
        right = b if b.ndim > 1 else b.reshape((b.size, 1))
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        whole = (*batch, left.shape[-2], right.shape[-1])
        made = self._device.empty(whole, out.name)
        multiply(self._device, left, right, made)
        self._device.copy(made.reshape(out.shape), out)
