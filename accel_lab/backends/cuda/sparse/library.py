"""Sparse matrices on cuda, by cuSPARSE, cuSOLVER and CuPy."""

from accel_lab.backends.cuda.sparse.algebra import CudaAlgebra
from accel_lab.backends.cuda.sparse.blocked_ell import CudaBlockedEll
from accel_lab.backends.cuda.sparse.conversion import CudaConversion
from accel_lab.backends.cuda.sparse.factors import CudaFactorizations
from accel_lab.backends.cuda.sparse.products import CudaProducts
from accel_lab.backends.cuda.sparse.structured import CudaStructured
from accel_lab.backends.cuda.sparse.systems import CudaSystems
from accel_lab.backends.cuda.sparse.triangular import CudaTriangular


class CudaSparse(
    CudaConversion,
    CudaProducts,
    CudaAlgebra,
    CudaTriangular,
    CudaSystems,
    CudaStructured,
    CudaBlockedEll,
    CudaFactorizations,
):
    """Enqueues on the device's active stream; what waits does so beside the dispatcher."""
