"""Which CUDA errors end a context, and what every other one is called.

After some errors no call of the process succeeds any more. For most of them the driver's manual
says "the process must be terminated and relaunched"; a test compares `STICKY` with those texts.
For these codes the runtime API has the driver's numbers.
"""

import re
from collections.abc import Callable

from accel_lab.compute.execution.backend import Poison
from accel_lab.compute.wire.text import text_of
from accel_lab.errors import AccelError, LibraryError, OutOfMemory

STICKY = {
    214: "CUDA_ERROR_ECC_UNCORRECTABLE",
    220: "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    226: "CUDA_ERROR_CONTAINED",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    702: "CUDA_ERROR_LAUNCH_TIMEOUT",
    709: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    710: "CUDA_ERROR_ASSERT",
    714: "CUDA_ERROR_HARDWARE_STACK_ERROR",
    715: "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    717: "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    718: "CUDA_ERROR_INVALID_PC",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    721: "CUDA_ERROR_TENSOR_MEMORY_LEAK",
    810: "CUDA_ERROR_MPS_CLIENT_TERMINATED",
    911: "CUDA_ERROR_EXTERNAL_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}

_CUDA_ERRORS = frozenset({"CUDARuntimeError", "CUDADriverError"})
_OUT_OF_MEMORY = frozenset(
    {
        "cudaErrorMemoryAllocation",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUSPARSE_STATUS_ALLOC_FAILED",
        "CUFFT_ALLOC_FAILED",
        "CUSOLVER_STATUS_ALLOC_FAILED",
    }
)
_NAME = re.compile(
    r"\b(?:CU[A-Z]*_STATUS_[A-Z_]+|CUFFT_[A-Z_]+|(?:CUDA|NVRTC)_ERROR_[A-Z_]+|cudaError[A-Za-z]+)"
)


def explain(
    error: BaseException, library: str, probe: Callable[[], int], free_bytes: Callable[[], int]
) -> AccelError | Poison:
    """Translate what a CUDA library raised.

    An error that does not say so itself may still come of a lost context: a library has its own
    codes, and a user's function its own packages. `probe` then asks the device for its status.
    """
    if isinstance(error, AccelError | Poison):
        return error
    code = getattr(error, "status", 0)
    if type(error).__name__ not in _CUDA_ERRORS or code not in STICKY:
        code = probe()
    explained: AccelError | Poison
    if code in STICKY:
        explained = Poison(code, STICKY[code], f"{STICKY[code]} ({code}): {_text(error)}")
    else:
        explained = _healthy(error, library, free_bytes)
    explained.__cause__ = error
    return explained


def _healthy(
    error: BaseException, library: str, free_bytes: Callable[[], int]
) -> OutOfMemory | LibraryError:
    text = _text(error)
    found = _NAME.search(text)
    name = found[0] if found else type(error).__name__
    if isinstance(error, MemoryError) or name in _OUT_OF_MEMORY:
        return OutOfMemory(
            f"{library}: {text}", asked_bytes=getattr(error, "_size", 0), free_bytes=free_bytes()
        )
    code = getattr(error, "status", 0)
    return LibraryError(f"{library}: {text}", library=library, code=code, name=name)


def _text(error: BaseException) -> str:
    return text_of(error) or type(error).__name__
