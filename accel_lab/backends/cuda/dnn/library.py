"""Layers of neural networks on cuda: cuDNN's convolutions, CuPy's kernels for the rest."""

import contextlib
from typing import TYPE_CHECKING

from cupy.cuda import runtime

from accel_lab.backends.cuda.dnn.convolution import CudaConvolutions
from accel_lab.backends.cuda.dnn.kit import CudaKit
from accel_lab.backends.cuda.dnn.normalizing import CudaNorms
from accel_lab.backends.cuda.own_kernels.driver_launches import DriverLaunches
from accel_lab.libraries.dnn.evaluation.exponentials import Exponentials
from accel_lab.libraries.dnn.evaluation.layers import Activations
from accel_lab.libraries.dnn.evaluation.pooling import Pooling
from accel_lab.libraries.dnn.evaluation.recurrence import Recurrence
from accel_lab.libraries.dnn.evaluation.response import Responses
from accel_lab.libraries.dnn.evaluation.training import Training

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice


class CudaDnn(
    CudaConvolutions,
    Activations,
    Pooling,
    CudaNorms,
    Responses,
    Exponentials,
    Training,
    Recurrence,
):
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        kit = CudaKit()
        CudaConvolutions.__init__(self, device, kit)
        CudaNorms.__init__(self, DriverLaunches(device), kit)

    def close(self) -> None:
        """Destroy what cuDNN has; waits for the device."""
        with contextlib.suppress(runtime.CUDARuntimeError):
            super().close()
