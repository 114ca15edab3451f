"""Layers of neural networks on cuda: cuDNN's convolutions, CuPy's kernels for the rest."""

import contextlib
from typing import TYPE_CHECKING

from cupy.cuda import runtime

from accel_lab.backends.cuda.dnn.convolution import CudaConvolutions
from accel_lab.backends.cuda.dnn.kit import CudaKit
from accel_lab.libraries.dnn.evaluation.exponentials import Exponentials
from accel_lab.libraries.dnn.evaluation.layers import Activations
from accel_lab.libraries.dnn.evaluation.normalizing import Norms
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
    Norms,
    Responses,
    Exponentials,
    Training,
    Recurrence,
):
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        kit = CudaKit()
        CudaConvolutions.__init__(self, device, kit)
        Activations.__init__(self, kit)

    def close(self) -> None:
        """Destroy what cuDNN has; waits for the device."""
        with contextlib.suppress(runtime.CUDARuntimeError):
            super().close()
