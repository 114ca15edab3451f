"""Products and convolutions on cuda, by kernels that are made of CUTLASS's templates."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from accel_lab.backends.cuda.cutlass.convolution import CudaConvolutions
from accel_lab.backends.cuda.cutlass.fused import CudaFused
from accel_lab.backends.cuda.cutlass.grouped import CudaGrouped
from accel_lab.backends.cuda.cutlass.kernels import Kernels
from accel_lab.backends.cuda.cutlass.prebuilt import CudaPrebuilt

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice


class CudaCutlass(CudaFused, CudaPrebuilt, CudaGrouped, CudaConvolutions):
    """Enqueues on the device's active stream; used by the dispatcher thread, but for `search`."""

    def __init__(self, device: "CudaDevice") -> None:
        self._kernels = Kernels(device)
        super().__init__()

    def statistics(self) -> Mapping[str, int]:
        """Count kernels, and products whose tiles were timed; any thread."""
        return {"kernels": len(self._kernels), "searched": self.searched}

    def close(self) -> None:
        """Unload the kernels; waits for the device."""
        self._kernels.close()
