"""Kernels over all elements: conversions of the dtypes CuPy lacks, and BLAS's sums.

CuPy compiles one at its first use for each kind of layout, and keeps it on disk for every later
process.
"""

from typing import Any

import cupy

from accel_lab.backends.cuda.device.narrow_floats import FORMATS, HALF, SOURCE, Format

_EXPRESSIONS = {"axpy": "alpha * {x} + {y}", "scal": "alpha * {x}"}
_FACTORS = {"float16": "float32", "bfloat16": "float32"}


def cast_kernel(source: str, target: str) -> Any:
    """Return the kernel (x, out) of a conversion; `out` of float16 is given as its bits."""
    reads, writes = FORMATS.get(source), FORMATS.get(target)
    value = reads.decode("x") if reads else "narrow::nearest(x)"
    if (source, target) == ("float64", "float16"):
        writes, value = HALF, "narrow::cut(x)"
    name = f"cast_{source}_to_{target}"
    return _kernel(name, f"{reads.storage if reads else source} x", writes, value)


def update_kernel(name: str, dtype: str) -> Any:
    """Return the kernel (x, [y,] alpha, out) of `axpy` or `scal`; `out` may be an operand."""
    form = FORMATS.get(dtype)
    read = form.decode if form else "float({})".format if dtype == "float16" else "{}".format
    arrays = "T x, T y" if name == "axpy" else "T x"
    inputs = f"{arrays}, {_FACTORS.get(dtype, dtype)} alpha"
    value = _EXPRESSIONS[name].format(x=read("x"), y=read("y"))
    return _kernel(f"{name}_{dtype}", inputs, form, value)


def choice_kernel() -> Any:
    """Return the kernel (condition, x, y, out) of `where`, of one dtype for x, y and out."""
    inputs, value = "C condition, T x, T y", "condition != C(0) ? x : y"
    return cupy.ElementwiseKernel(inputs, "T z", f"z = {value}", "accel_lab_where")


def _kernel(name: str, inputs: str, writes: Format | None, value: str) -> Any:
    code = writes.encode(value) if writes else value
    return cupy.ElementwiseKernel(
        inputs, "T z", f"z = T({code})", f"accel_lab_{name}", preamble=SOURCE
    )
