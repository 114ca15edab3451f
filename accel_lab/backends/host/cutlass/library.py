"""Products with an end of their own, on the host: NumPy, in the dtype of the sums."""

import math
from typing import Any

import numpy as np

from accel_lab.backends.host.cutlass.fused import HostFused
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.execution.worker import Worker
from accel_lab.libraries.authoring.operand import Number, element
from accel_lab.libraries.cutlass.convolution import OfImages, window_of
from accel_lab.libraries.cutlass.library import (
    Conv,
    ConvDataGradient,
    ConvFilterGradient,
    Gemm,
    GroupedGemm,
    ScaledGemm,
)
from accel_lab.libraries.cutlass.message import SUMS, Epilogue
from accel_lab.libraries.dnn.evaluation.convolving import data_gradient, filter_gradient, forward
from accel_lab.libraries.dnn.message import moved, moved_back

_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715
_LAYOUT = "channels_last"


class HostCutlass(HostFused):
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def missing(self, m: Gemm | ScaledGemm, a: Any, b: Any) -> None:
        """Return None: there is nothing to compile."""

    def missing_grouped(self, m: GroupedGemm, a: list[Any], b: list[Any]) -> None:
        """Return None: there is nothing to compile."""

    def missing_conv(self, m: OfImages) -> None:
        """Return None: there is nothing to compile."""

    def has_searched(self, m: Gemm | ScaledGemm, a: Any, b: Any) -> bool:
        """Return True: there is one way to do it."""
        del m, a, b
        return True

    def search(self, m: Gemm | ScaledGemm, a: Any, b: Any, bias: Any, worker: Worker) -> None:
        """Time nothing."""

    def gemm(self, m: Gemm, a: Any, b: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write epilogue(scale a @ b + bias)."""
        _multiply(m.a.dtype, m.epilogue, (a, b, bias), out, scale)

    @np.errstate(all="ignore")
    def scaled_gemm(
        self, m: ScaledGemm, a: Any, b: Any, bias: Any, scales: tuple[Any, Any], out: Any
    ) -> None:
        """Write epilogue(scale scale_a scale_b a @ b + bias)."""
        factor = np.float32(element(m, "scale", m.scale, "float32").real)
        for scale in scales:
            if scale is not None:
                factor *= scale
        product = np.matmul(a.astype(np.float32), b.astype(np.float32))
        out[...] = _ended(m.epilogue, product, bias, float(factor))

    def grouped_gemm(
        self,
        m: GroupedGemm,
        a: list[Any],
        b: list[Any],
        bias: list[Any],
        out: list[Any],
        scale: Number,
    ) -> None:
        """Write epilogue(scale a[i] @ b[i] + bias[i]) to each part."""
        added = bias or [None] * len(a)
        for *operands, to in zip(a, b, added, out, strict=True):
            _multiply(m.a[0].dtype, m.epilogue, tuple(operands), to, scale)

    @np.errstate(all="ignore")
    def conv(self, m: Conv, x: Any, w: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write the end of what was convolved, scaled, and the bias."""
        slides = window_of(m, w.shape[1:3])
        made = moved_back(forward(np, _wide(x), _wide(w), slides, 1), _LAYOUT)
        out[...] = _ended(m.epilogue, made, bias, scale)

    @np.errstate(all="ignore")
    def conv_data_gradient(
        self, m: ConvDataGradient, dy: Any, w: Any, out: Any, scale: Number
    ) -> None:
        """Write the gradient by what was convolved."""
        slides = window_of(m, w.shape[1:3])
        made = data_gradient(np, _wide(dy), _wide(w), m.extents, slides, 1)
        out[...] = _ended("identity", moved_back(made, _LAYOUT), None, scale)

    @np.errstate(all="ignore")
    def conv_filter_gradient(
        self, m: ConvFilterGradient, x: Any, dy: Any, out: Any, scale: Number
    ) -> None:
        """Write the gradient by the filters."""
        slides = window_of(m, out.shape[1:3])
        made = filter_gradient(np, _wide(x), _wide(dy), slides, 1)
        out[...] = _ended("identity", moved_back(made, _LAYOUT), None, scale)


def finished(epilogue: Epilogue, x: Any) -> Any:
    """Return the end of each element."""
    if epilogue == "relu":
        return np.maximum(x, 0)
    if epilogue == "gelu":
        return 0.5 * x * (1 + np.tanh(_SCALE * (x + _CUBIC * x * x * x)))
    return x


@np.errstate(all="ignore")
def _multiply(
    dtype: str, epilogue: Epilogue, operands: tuple[Any, ...], out: Any, scale: Number
) -> None:
    a, b, bias = operands
    if dtype == "int8":  # float64 holds such sums exactly, and BLAS is quick
        product = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int32)
    else:
        wide = numpy_dtype(SUMS.get(dtype, dtype))
        product = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    out[...] = _ended(epilogue, product, bias, scale)


def _ended(epilogue: Epilogue, sums: Any, bias: Any, scale: Number) -> Any:
    """Return the end of sums, which are overwritten."""
    sums *= sums.dtype.type(scale)
    if bias is not None:
        sums += bias.astype(sums.dtype, copy=False)
    return finished(epilogue, sums)


def _wide(x: Any) -> Any:
    """Return an image in the dtype of its sums, with the channels behind the batch."""
    return moved(x.astype(np.float32, copy=False), _LAYOUT)
