"""Words of page-locked host memory that the card writes, in the order of a stream."""

import ctypes
from functools import cache
from typing import Any

from accel_lab.compute.machine.loaded_driver import loaded_driver


def write_word(address: int, value: int, stream: int) -> None:
    """Have the card write the 32-bit word at an address of this process; does not block.

    Enqueues `cuStreamWriteValue32`, before which all that the stream has written is visible.
    Does nothing where the memory is not page-locked.
    """
    driver, seen = _driver(), ctypes.c_uint64()
    if not driver.cuMemHostGetDevicePointer_v2(ctypes.byref(seen), address, 0):
        driver.cuStreamWriteValue32_v2(stream, seen, value, 0)


@cache
def _driver() -> Any:
    driver = loaded_driver(quick=True)
    assert driver is not None
    pointer, unsigned = ctypes.c_void_p, ctypes.c_uint
    driver.cuMemHostGetDevicePointer_v2.argtypes = [pointer, pointer, unsigned]
    driver.cuStreamWriteValue32_v2.argtypes = [pointer, ctypes.c_uint64, ctypes.c_uint32, unsigned]
    return driver
