"""BLAS on cuda: cuBLAS through nvmath's bindings, on one handle."""

from accel_lab.backends.cuda.blas.grouped import CudaGrouped
from accel_lab.backends.cuda.blas.halves import CudaHalves
from accel_lab.backends.cuda.blas.scaled import CudaScaled
from accel_lab.backends.cuda.blas.triangles import CudaTriangles
from accel_lab.backends.cuda.blas.vectors import CudaVectors


class CudaBlas(CudaVectors, CudaHalves, CudaTriangles, CudaGrouped, CudaScaled):
    """Enqueues on the device's active stream; used by the dispatcher thread."""
