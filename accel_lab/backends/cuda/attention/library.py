"""Attention on cuda: products by cuBLAS and CuPy's kernels."""

from typing import Any

import cupy

from accel_lab.backends.cuda.device.narrow_floats import FORMATS
from accel_lab.backends.cuda.dnn.kit import CudaKit
from accel_lab.libraries.attention.evaluation.paged import Paged
from accel_lab.libraries.attention.evaluation.terms import Size

_SIZE = Size(rows=1024, keys=4096, scores=2**25)


class CudaCacheKit(CudaKit):
    """CuPy's arrays; narrow floats that it lacks are arrays of their bits."""

    def storage(self, dtype: str) -> str:
        """Return CuPy's dtype, or that of the bits."""
        return FORMATS[dtype].storage if dtype in FORMATS else dtype

    def fetched(self, x: Any) -> Any:
        """Return NumPy's array; waits for the stream."""
        return cupy.asnumpy(x)


class CudaAttention(Paged):
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self) -> None:
        super().__init__(CudaCacheKit(), _SIZE)
