"""How cuSPARSE names the dtypes of values, and in what it computes."""

from typing import Any, NamedTuple

import numpy as np
from nvmath import CudaDataType

from accel_lab.libraries.authoring.operand import Number


class Values(NamedTuple):
    """One dtype to cuSPARSE.

    Attributes:
        element: cudaDataType of what is stored.
        compute: cudaDataType of sums, and of alpha and beta.
        scalar_type: alpha and beta on the host.
    """

    element: int
    compute: int
    scalar_type: Any

    def factor(self, value: Number) -> Any:
        """Return an alpha or beta in host memory, rounded without a warning."""
        with np.errstate(all="ignore"):
            return np.array(self.scalar_type(value))


_R16, _B16 = int(CudaDataType.CUDA_R_16F), int(CudaDataType.CUDA_R_16BF)
_R32, _C32 = int(CudaDataType.CUDA_R_32F), int(CudaDataType.CUDA_C_32F)
_R64, _C64 = int(CudaDataType.CUDA_R_64F), int(CudaDataType.CUDA_C_64F)

VALUES = {
    "float16": Values(_R16, _R32, np.float32),
    "bfloat16": Values(_B16, _R32, np.float32),
    "float32": Values(_R32, _R32, np.float32),
    "float64": Values(_R64, _R64, np.float64),
    "complex64": Values(_C32, _C32, np.complex64),
    "complex128": Values(_C64, _C64, np.complex128),
}
