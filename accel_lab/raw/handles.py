"""The handles that the library actors of a device have: for `gpu.run` and `%%gpu` cells.

Each function returns an integer, the address of the vendor's handle, put on the stream on which
your code runs. It is valid until your function or cell ends, on its thread. Then stream and
modes are set back as accel_lab needs them; put back yourself what else you change, and do not
destroy the handle. What your code does with it is supervised as all else: a fault costs the
context.
"""

from accel_lab.compute.user_code.raw_handles import of_running
from accel_lab.errors import InvalidArgument

__all__ = ["cublas", "cublas_lt", "cudnn", "cufft", "cusolver", "cusparse", "stream"]


def cublas() -> int:
    """Return the handle of cuBLAS (cublasHandle_t), with a workspace of cuBLAS's own.

    Raises:
        BackendUnavailable: this device has none.
        InvalidArgument: it is not called on a device.
    """
    return of_running("cublas").handle("cuBLAS", "blas")


def cublas_lt() -> int:
    """Return the handle of cuBLASLt (cublasLtHandle_t); its calls take `raw.stream()`.

    Raises:
        BackendUnavailable: this device has none.
        InvalidArgument: it is not called on a device.
    """
    return of_running("cublas_lt").handle("cuBLASLt", "blas_lt")


def cusolver() -> int:
    """Return the handle of cuSOLVER's dense part (cusolverDnHandle_t).

    Raises:
        BackendUnavailable: this device has none.
        InvalidArgument: it is not called on a device.
    """
    return of_running("cusolver").handle("cuSOLVER", "solver")


def cusparse() -> int:
    """Return the handle of cuSPARSE (cusparseHandle_t).

    Raises:
        BackendUnavailable: this device has none.
        InvalidArgument: it is not called on a device.
    """
    return of_running("cusparse").handle("cuSPARSE", "sparse")


def cudnn() -> int:
    """Return the handle of cuDNN (cudnnHandle_t).

    Raises:
        BackendUnavailable: this device has none, or cuDNN's frontend is not installed.
        InvalidArgument: it is not called on a device.
    """
    return of_running("cudnn").handle("cuDNN", "dnn")


def cufft() -> int:
    """Refuse: cuFFT has plans and no handle.

    Raises:
        InvalidArgument: always.
    """
    raise InvalidArgument(
        "raw.cufft(): cuFFT has no handle, only plans; make one of your own and put it on "
        "raw.stream(), with cufftSetStream"
    )


def stream() -> int:
    """Return the stream on which your code runs (cudaStream_t); 0 is CUDA's default stream.

    Raises:
        BackendUnavailable: this device has no streams.
        InvalidArgument: it is not called on a device.
    """
    return of_running("stream").stream()
