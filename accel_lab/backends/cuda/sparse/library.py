"""Sparse matrices on cuda, by cuSPARSE and CuPy."""

from accel_lab.backends.cuda.sparse.conversion import CudaConversion
from accel_lab.backends.cuda.sparse.products import CudaProducts


class CudaSparse(CudaConversion, CudaProducts):
    """Enqueues on the device's active stream; used by the dispatcher thread."""
