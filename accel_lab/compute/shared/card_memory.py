"""Memory of a card that another process owns, opened by the driver that this process has loaded.

Nothing here loads CUDA: what uses such memory has loaded its driver, which is asked in C.
"""

import contextlib
import ctypes
import weakref
from collections.abc import Iterator
from typing import Any

from accel_lab.compute.machine.loaded_driver import card_id, loaded_driver
from accel_lab.compute.shared.shared_file import OpenedFile
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied

HANDLE_BYTES = 64
_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS


class _Handle(ctypes.Structure):
    """CUipcMemHandle, which is passed by its value."""

    _fields_ = (("data", ctypes.c_ubyte * HANDLE_BYTES),)


class CardMemory(Uncopied):
    """An allocation of another process, open in the context that PyTorch and CuPy use.

    It is closed when this is collected, in whatever thread.

    Parameters:
        file: keeps it allocated until it is closed.

    Attributes:
        address: where it begins in this process.
        nbytes: how long it is.

    Raises:
        InvalidArgument: this process has no CUDA, does not see the card, or cannot open it.
    """

    _instead = "open it again"

    def __init__(self, handle: bytes, card: bytes, file: OpenedFile) -> None:
        driver = loaded_driver()
        if driver is None:
            text = "this process has loaded no CUDA driver; use PyTorch or CuPy on the card first"
            raise InvalidArgument(f"memory of a card: {text}")
        ordinal, context = _ordinal_of(driver, card), ctypes.c_void_p()
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        given = _Handle.from_buffer_copy(handle)
        # It is kept until the memory is closed: with a context goes what it has open.
        _check(driver, driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal))
        try:
            with _current(driver, context):
                flags = ctypes.c_uint(_PEER_ACCESS)
                _check(driver, driver.cuIpcOpenMemHandle_v2(ctypes.byref(base), given, flags))
        except BaseException:
            driver.cuDevicePrimaryCtxRelease_v2(ordinal)
            raise
        self.address: int = base.value
        # At exit the system closes it, and the driver may be gone.
        weakref.finalize(self, _close, driver, ordinal, context, base, file).atexit = False
        with _current(driver, context):
            _check(driver, driver.cuMemGetAddressRange_v2(None, ctypes.byref(size), base))
        self.nbytes: int = size.value


def _close(driver: Any, ordinal: int, context: Any, base: Any, file: OpenedFile) -> None:
    """Close memory once this process's kernels are done, and let go of its file after that."""
    with contextlib.suppress(InvalidArgument), _current(driver, context):
        driver.cuCtxSynchronize()
        driver.cuIpcCloseMemHandle(base)
    driver.cuDevicePrimaryCtxRelease_v2(ordinal)
    del file


def _ordinal_of(driver: Any, card: bytes) -> int:
    count = ctypes.c_int()
    _check(driver, driver.cuInit(0))
    _check(driver, driver.cuDeviceGetCount(ctypes.byref(count)))
    for ordinal in range(count.value):
        if card_id(ordinal) == card:
            return ordinal
    seen = f"{count.value} of others" if count.value else "none"
    text = f"memory of card {card.hex()[:8]}, which this process does not see; it sees {seen}"
    raise InvalidArgument(text)


@contextlib.contextmanager
def _current(driver: Any, context: Any) -> Iterator[None]:
    """Have a context current in this thread meanwhile."""
    _check(driver, driver.cuCtxPushCurrent_v2(context))
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def _check(driver: Any, code: int) -> None:
    if code:
        name = ctypes.c_char_p()
        driver.cuGetErrorName(code, ctypes.byref(name))
        called = (name.value or b"").decode()
        text = f"memory of another process cannot be opened: CUDA answers {called} ({code})"
        raise InvalidArgument(text)
