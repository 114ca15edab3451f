"""Arrays on cuda: CuPy's copies and views, and kernels for the dtypes that CuPy lacks.

bfloat16 and float8 buffers are held as uint16 and uint8 arrays of their bits.
"""

import builtins
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import runtime

from accel_lab.backends.cuda.elementwise import cast_kernel
from accel_lab.backends.cuda.rounding import FORMATS
from accel_lab.compute.dtypes import numpy_dtype
from accel_lab.libraries.operand import Number

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device import CudaDevice

_BITS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class CudaArray:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._casts: dict[tuple[str, str], Any] = {}

    def zeros(self, out: Any) -> None:
        """Write zeros."""
        if out.flags.c_contiguous:
            if out.size:
                runtime.memsetAsync(out.data.ptr, 0, out.nbytes, self._device.active.ptr)
        else:
            out.fill(0)

    def full(self, out: Any, value: Number, *, dtype: str) -> None:
        """Write `value`, rounded to the dtype as NumPy does."""
        with np.errstate(all="ignore"):
            element = np.asarray(value, numpy_dtype(dtype))
        # As bits: a few kernels then serve all dtypes, and -0.0 keeps its sign.
        bits = _BITS.get(element.itemsize)
        if bits is None:
            out.fill(element)
        else:
            out.view(bits).fill(element.view(bits))

    def copy(self, x: Any, out: Any) -> None:
        """Copy `x` into `out` of the same shape and dtype."""
        cupy.copyto(out, x)

    def cast(self, x: Any, out: Any, *, source: str, target: str) -> None:
        """Convert `x` into `out`, rounding to nearest."""
        if source == target:
            cupy.copyto(out, x)
        elif target == "float16" and source == "float64":
            self._cast(x, out.view("H"), source, target)
        elif source in FORMATS or target in FORMATS:
            self._cast(x, out, source, target)
        else:
            cupy.copyto(out, x, casting="unsafe")

    def slice(self, x: Any, index: tuple[int | builtins.slice | None, ...]) -> Any:
        """Return a view by basic indexing; CuPy's is an array even when it has no axes."""
        return x[index]

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any | None:
        """Return a view in C order, or None when the strides allow none."""
        view = x.view()
        try:
            view.shape = shape
        except AttributeError:
            return None
        return view

    def transpose(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(axes)

    def _cast(self, x: Any, out: Any, source: str, target: str) -> None:
        kernel = self._casts.get((source, target))
        if kernel is None:
            kernel = self._casts[source, target] = cast_kernel(source, target)
        kernel(x, out)
