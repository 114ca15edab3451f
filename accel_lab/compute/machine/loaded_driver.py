"""The CUDA driver of this process, if something here has loaded it; nothing here does."""

import ctypes
import os
from functools import cache
from typing import Any

_LIBRARY = "libcuda.so.1"
_POINTER = ctypes.c_void_p  # to what the driver fills, or on the host
_DEVICE_POINTER = ctypes.c_uint64
_ARGUMENTS: dict[str, list[Any]] = {
    "cuPointerGetAttribute": [_POINTER, ctypes.c_int, _DEVICE_POINTER],
    "cuDevicePrimaryCtxRetain": [_POINTER, ctypes.c_int],
    "cuDevicePrimaryCtxRelease_v2": [ctypes.c_int],
    "cuCtxGetCurrent": [_POINTER],
    "cuCtxPushCurrent_v2": [_POINTER],
    "cuCtxPopCurrent_v2": [_POINTER],
    "cuStreamQuery": [_POINTER],
    "cuStreamSynchronize": [_POINTER],
    "cuMemGetAddressRange_v2": [_POINTER, _POINTER, _DEVICE_POINTER],
    "cuIpcGetMemHandle": [_POINTER, _DEVICE_POINTER],
    "cuMemcpyDtoH_v2": [_POINTER, _DEVICE_POINTER, ctypes.c_size_t],
}
"""What those take that work with arrays: with that set once, a call takes plain numbers."""

UNPROTECTED = (
    "a fault of CUDA code that runs in this process costs it all that it has on the card, and a "
    "restart; put the arrays on a device and run the code in %%gpu cells"
)


def loaded_driver(*, quick: bool = False) -> Any:
    """Return the driver's C interface; None when this process has not loaded it. Any thread.

    Parameters:
        quick: for calls that do not block. They keep the interpreter's lock: to give it away and
            have it again takes longer than they do.
    """
    try:
        return _open(ctypes.PyDLL if quick else ctypes.CDLL)
    except OSError:
        return None


@cache  # not of the error: it may be loaded later
def _open(library: type[ctypes.CDLL]) -> Any:
    driver = library(_LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    for name, arguments in _ARGUMENTS.items():
        getattr(driver, name).argtypes = arguments
    return driver


def card_id(ordinal: int) -> bytes:
    """Return by what every process knows a card, of which this one knows the number; or nothing."""
    driver, device, found = loaded_driver(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), ordinal):
        return b""
    return b"" if driver.cuDeviceGetUuid_v2(found, device) else bytes(found)


def open_contexts() -> tuple[int, ...]:
    """Return the cards on which this process has a CUDA context of its own; any thread."""
    driver = loaded_driver()
    count = ctypes.c_int()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()  # loaded, perhaps, and not begun
    flags, active = ctypes.c_uint(), ctypes.c_int()
    found = []
    for card in range(count.value):
        state = ctypes.byref(flags), ctypes.byref(active)
        if not driver.cuDevicePrimaryCtxGetState(card, *state) and active.value:
            found.append(card)
    return tuple(found)
