"""Attention on cuda: products by cuBLAS and CuPy's kernels."""

from accel_lab.backends.cuda.dnn.kit import CudaKit
from accel_lab.libraries.attention.evaluation.dense import Dense
from accel_lab.libraries.attention.evaluation.terms import Size

_SIZE = Size(rows=1024, keys=4096, scores=2**25)


class CudaAttention(Dense):
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self) -> None:
        super().__init__(CudaKit(), _SIZE)
