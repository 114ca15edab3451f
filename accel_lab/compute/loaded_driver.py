"""The CUDA driver of this process, if something here has loaded it; nothing here does."""

import ctypes
import os
from typing import Any

_LIBRARY = "libcuda.so.1"

UNPROTECTED = (
    "a fault of CUDA code that runs in this process costs it all that it has on the card, and a "
    "restart; put the arrays on a device and run the code in %%gpu cells"
)


def loaded_driver() -> Any:
    """Return the driver's C interface; None when this process has not loaded it. Any thread."""
    try:
        return ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


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
