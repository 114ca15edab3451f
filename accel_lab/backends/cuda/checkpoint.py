"""Keep a context process of cuda: the driver moves the memory of its card to the host and back.

CUDA's checkpoint, from driver 570 on. A process of the same user may ask for it, and needs no
context of its own. Nothing in the other process may wait for an event or a stream until it is back.

Runs in the notebook.
"""

import ctypes
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from accel_lab.backends.cuda.links import handle_of
from accel_lab.display.sizes import compared
from accel_lab.errors import LibraryError, OutOfMemory

NOT_READY = 600  # CUDA_ERROR_NOT_READY
MOST_S = 24 * 3600.0
MARGIN_BYTES = 64 << 20
"""How much more than was given back has to be free: what the driver itself may take is not told."""


class LockOptions(ctypes.Structure):
    """CUcheckpointLockArgs."""

    _fields_ = (
        ("timeout_ms", ctypes.c_uint),
        ("reserved0", ctypes.c_uint),
        ("reserved1", ctypes.c_uint64 * 7),
    )


class CudaProcessKeeper:
    """Checkpoints the process of one card, given by its number among the visible ones."""

    ends_frozen = True

    def __init__(self, index: int) -> None:
        self._index = index
        self._given_back = 0

    def freeze(self, pid: int, timeout_s: float) -> None:
        """Lock a process and checkpoint it; what runs there is waited for.

        Raises:
            TimeoutError: it is still busy.
            LibraryError: the driver cannot.
        """
        before = self._free_bytes()
        options = LockOptions(max(1, int(min(timeout_s, MOST_S) * 1e3)))
        status = _driver().cuCheckpointProcessLock(pid, ctypes.byref(options))
        if status == NOT_READY:
            raise TimeoutError(f"process {pid} is still busy on its card")
        _require(status, "cuCheckpointProcessLock")
        status = _driver().cuCheckpointProcessCheckpoint(pid, None)
        if status:
            _driver().cuCheckpointProcessUnlock(pid, None)
            _require(status, "cuCheckpointProcessCheckpoint")
        self._given_back = max(0, self._free_bytes() - before)

    def thaw(self, pid: int) -> None:
        """Restore a process and unlock it, where there is room: to try without is final.

        Raises:
            OutOfMemory: the card has less free than was given back.
            LibraryError: the driver cannot.
        """
        asked, free = self._given_back + MARGIN_BYTES, self._free_bytes()
        if asked > free:
            write = compared(asked, free)
            text = f"the process needs {write(asked)} to come back, and {write(free)} are free"
            raise OutOfMemory(text, asked_bytes=asked, free_bytes=free)
        _require(_driver().cuCheckpointProcessRestore(pid, None), "cuCheckpointProcessRestore")
        _require(_driver().cuCheckpointProcessUnlock(pid, None), "cuCheckpointProcessUnlock")

    def _free_bytes(self) -> int:
        """Return what the card has free, as NVML tells.

        Raises:
            LibraryError: it does not.
        """
        nvml: Any = import_module("pynvml")
        try:
            nvml.nvmlInit()
            free: int = nvml.nvmlDeviceGetMemoryInfo(handle_of(nvml, self._index)).free
        except nvml.NVMLError as error:
            text = f"NVML does not tell how much the card has free: {error}"
            raise LibraryError(text, library="nvml", name="MEMORY") from error
        finally:
            with suppress(nvml.NVMLError):
                nvml.nvmlShutdown()
        return free


@cache
def _driver() -> Any:
    """Return the driver's C interface; nothing here opens a card.

    Raises:
        LibraryError: it is not there, or older than its checkpoint.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuCheckpointProcessLock  # noqa: B018 - whether it is there
    except (OSError, AttributeError) as error:
        text = f"the driver has no checkpoint, which came with 570: {error}"
        raise LibraryError(text, library="cuda", name="NO_CHECKPOINT") from error
    return driver


def _require(status: int, call: str) -> None:
    if not status:
        return
    name = ctypes.c_char_p()
    _driver().cuGetErrorName(status, ctypes.byref(name))
    known = name.value.decode() if name.value else f"error {status}"
    raise LibraryError(f"{call}: {known}", library="cuda", code=status, name=known)
