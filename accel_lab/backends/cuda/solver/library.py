"""Dense solvers on cuda: cuSOLVER and cuBLAS through nvmath's bindings."""

from accel_lab.backends.cuda.solver.spectra import CudaSpectra
from accel_lab.backends.cuda.solver.systems import CudaSystems


class CudaSolver(CudaSystems, CudaSpectra):
    """Enqueues on the device's active stream, and what iterates on a worker's."""
