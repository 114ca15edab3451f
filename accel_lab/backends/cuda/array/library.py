"""Arrays on cuda: CuPy's copies, views and functions, and kernels for the dtypes that CuPy lacks.

bfloat16 and float8 buffers are held as uint16 and uint8 arrays of their bits; what is computed with
them is computed in float32 and rounded once.
"""

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import runtime

from accel_lab.backends.cuda.array.elementwise import cast_kernel, choice_kernel
from accel_lab.backends.cuda.array.fused import FusedKernels
from accel_lab.backends.cuda.device.narrow_floats import FORMATS
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.array.library import (
    Cast,
    Copy,
    Full,
    Reshape,
    Slice,
    Take,
    Transpose,
    Zeros,
)
from accel_lab.libraries.array.reduction import PLACES, SPREADS, Reduce
from accel_lab.libraries.authoring.operand import Number

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

_ANSWERS = frozenset({"where", "matmul"})
"""What is copied to its place: CuPy's own `out` takes another dtype or none."""
_WRITTEN = frozenset({"sum", "prod", "max", "min", "mean"})
"""Reductions whose `out` CuPy writes at once."""
_TRUTHS = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_BITS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_INT64_MOST = 2**63 - 1


class CudaArray:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._casts: dict[tuple[str, str], Any] = {}
        self._choose = choice_kernel()
        self.fused = FusedKernels(device)

    def zeros(self, _: Zeros, out: Any) -> None:
        """Write zeros."""
        if out.flags.c_contiguous:
            if out.size:
                runtime.memsetAsync(out.data.ptr, 0, out.nbytes, self._device.active.ptr)
        else:
            out.fill(0)

    def full(self, m: Full, out: Any, value: Number) -> None:
        """Write the value, rounded to the dtype as NumPy does."""
        with np.errstate(all="ignore"):
            element = np.asarray(value, numpy_dtype(m.dtype))
        # As bits: a few kernels then serve all dtypes, and -0.0 keeps its sign.
        bits = _BITS.get(element.itemsize)
        if bits is None:
            out.fill(element)
        else:
            out.view(bits).fill(element.view(bits))

    def copy(self, _: Copy | Reshape, x: Any, out: Any) -> None:
        """Copy `x` into `out` of the same shape and dtype; nothing, where they are one array."""
        if out is not x:
            cupy.copyto(out, x)

    def cast(self, m: Cast, x: Any, out: Any) -> None:
        """Convert `x` into `out`, rounding to nearest."""
        self._convert(x, out, m.x.dtype, m.dtype)

    def _convert(self, x: Any, out: Any, source: str, target: str) -> None:
        if source == target:
            cupy.copyto(out, x)
        elif target == "float16" and source == "float64":
            self._cast(x, out.view("H"), source, target)
        elif source in FORMATS or target in FORMATS:
            self._cast(x, out, source, target)
        else:
            cupy.copyto(out, x, casting="unsafe")

    def slice(self, m: Slice, x: Any) -> Any:
        """Return a view by basic indexing; CuPy's is an array even when it has no axes."""
        return x[m.entries]

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any | None:
        """Return a view in C order, or None when the strides allow none."""
        view = x.view()
        try:
            view.shape = shape
        except AttributeError:
            return None
        return view

    def transpose(self, m: Transpose, x: Any) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(m.order)

    def apply(
        self,
        op: str,
        operands: tuple[Any, ...],
        dtypes: tuple[str, ...],
        out: Any,
        *,
        dtype: str,
    ) -> None:
        """Write CuPy's function of the same name."""
        function = getattr(cupy, op)
        values = [_unsigned(x) for x in map(self._wide, operands, dtypes)]
        if op in _TRUTHS and any(map(_is_complex, values)):
            values = [x != 0 for x in values]  # CuPy has none of complex numbers
        if op == "where" and self._is_alike(dtypes, dtype):
            self._choose(*values, out)
        elif op in _ANSWERS or dtype in FORMATS:
            self._answer(function(*values), out, dtype)
        else:
            enqueued = self._device.active.enqueuing()
            function(*values, out=out)
            if enqueued is not None:
                enqueued()

    @staticmethod
    def _is_alike(dtypes: tuple[str, ...], dtype: str) -> bool:
        """Whether a choice is among values of the result's dtype, by an array."""
        if not dtypes[0] or dtypes[0] in FORMATS or dtype in FORMATS:
            return False
        return all(one == dtype for one in dtypes[1:] if one) and any(dtypes[1:])

    def reduce(self, m: Reduce, x: Any, out: Any) -> None:
        """Write CuPy's reduction of the same name."""
        op, axes = m.op, m.axes()
        along = None if len(axes) == x.ndim else axes
        options: dict[str, Any] = {"axis": along, "keepdims": m.keepdims}
        if op in PLACES and along is not None:
            (options["axis"],) = axes
        if op in SPREADS:
            options["ddof"] = m.ddof
        if m.dtype:
            options["dtype"] = "float32" if m.dtype in FORMATS else m.dtype
        function, x, dtype = getattr(cupy, op), self._wide(x, m.x.dtype), m.made_dtype()
        if op in _WRITTEN and dtype not in FORMATS:
            function(x, out=out, **options)
        else:
            self._answer(function(x, **options), out, dtype)

    def take(self, m: Take, x: Any, indices: Any, out: Any) -> None:
        """Write the elements at `indices` (cupy.take), which wrap around."""
        cupy.take(x, indices, axis=m.axis, out=out)

    def _wide(self, x: Any, dtype: str) -> Any:
        """Return what CuPy computes with in place of the bits of narrow floats."""
        if dtype not in FORMATS:
            return x
        wide = cupy.empty(x.shape, "float32")
        self._cast(x, wide, dtype, "float32")
        return wide

    def _answer(self, answer: Any, out: Any, dtype: str) -> None:
        """Put what CuPy has computed in its place, in the dtype that was announced."""
        self._convert(answer, out, str(answer.dtype), dtype)

    def _cast(self, x: Any, out: Any, source: str, target: str) -> None:
        kernel = self._casts.get((source, target))
        if kernel is None:
            kernel = self._casts[source, target] = cast_kernel(source, target)
        kernel(x, out)


def _is_complex(x: Any) -> bool:
    return isinstance(x, complex) or (isinstance(x, cupy.ndarray) and x.dtype.kind == "c")


def _unsigned(value: Any) -> Any:
    """Return an integer that int64 lacks as NumPy's uint64: CuPy takes Python's as int64."""
    return np.uint64(value) if type(value) is int and value > _INT64_MOST else value
