"""How cuBLAS names each dtype, and in what it computes."""

from typing import Any, NamedTuple

import numpy as np
from nvmath import CudaDataType
from nvmath.bindings.cublas import ComputeType

from accel_lab.libraries.authoring.operand import Number


class Precision(NamedTuple):
    """One dtype to cuBLAS.

    Attributes:
        element: cudaDataType of the arrays.
        factor: cudaDataType of alpha and beta, and of what vectors are computed in.
        compute: cublasComputeType_t of products.
        scalar_type: alpha and beta on the host.
        itemsize: bytes of an element.
        real: cudaDataType of a norm.
        real_factor: cudaDataType of what a norm is computed in.
    """

    element: int
    factor: int
    compute: int
    scalar_type: Any
    itemsize: int
    real: int
    real_factor: int

    @property
    def is_complex(self) -> bool:
        """Whether elements have an imaginary part."""
        return self.element != self.real

    def scalar(self, value: Number) -> Any:
        """Return a factor as cuBLAS reads it, rounded without a warning."""
        with np.errstate(all="ignore"):
            return self.scalar_type(value)


_R16, _B16 = int(CudaDataType.CUDA_R_16F), int(CudaDataType.CUDA_R_16BF)
_R32, _C32 = int(CudaDataType.CUDA_R_32F), int(CudaDataType.CUDA_C_32F)
_R64, _C64 = int(CudaDataType.CUDA_R_64F), int(CudaDataType.CUDA_C_64F)
TF32 = int(ComputeType.COMPUTE_32F_FAST_TF32)
_IN_32, _IN_64 = int(ComputeType.COMPUTE_32F), int(ComputeType.COMPUTE_64F)

PRECISIONS = {
    "float16": Precision(_R16, _R32, _IN_32, np.float32, 2, _R16, _R32),
    "bfloat16": Precision(_B16, _R32, _IN_32, np.float32, 2, _B16, _R32),
    "float32": Precision(_R32, _R32, _IN_32, np.float32, 4, _R32, _R32),
    "float64": Precision(_R64, _R64, _IN_64, np.float64, 8, _R64, _R64),
    "complex64": Precision(_C32, _C32, _IN_32, np.complex64, 8, _R32, _R32),
    "complex128": Precision(_C64, _C64, _IN_64, np.complex128, 16, _R64, _R64),
}
