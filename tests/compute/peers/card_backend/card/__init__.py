"""The host backend, whose buffers other contexts can open: each is a file, as a card's memory.

`ACCEL_LAB_TEST_CARDS` names their folder. While a process has one open there is a file with the
process's number behind that name. Nothing is copied while there is a file `gate`
there, and nothing closed while there is `late`.
"""

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel_lab.backends.host import (
    SUPPORT,
    available,
    device_name,
    peer_links,
    preload,
    process_keeper,
    versions,
)

__all__ = [
    "SUPPORT",
    "available",
    "device_count",
    "device_name",
    "open_backend",
    "peer_links",
    "preload",
    "process_keeper",
    "versions",
]

CARDS = "ACCEL_LAB_TEST_CARDS"
LARGE_BYTES = 1000
"""From how many bytes on a buffer is a file."""


def device_count() -> int:
    """Return how many devices there are."""
    return 2


def open_backend(index: int) -> Any:
    """Open the host, with memory that others can open."""
    import numpy as np

    from accel_lab.backends.host.device import HostBackend
    from accel_lab.compute.arrays.dtypes import numpy_dtype
    from accel_lab.errors import InvalidArgument

    folder, numbers = Path(os.environ[CARDS]), itertools.count(1)

    class CardBackend(HostBackend):
        """Makes files of buffers."""

        def __init__(self, index: int) -> None:
            super().__init__(index)
            self.peers = self

        def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
            array = np.empty(0, numpy_dtype(dtype))
            count = int(np.prod(shape))
            if count * array.itemsize < LARGE_BYTES:
                return super().empty(shape, dtype)
            path = folder / f"{os.getpid()}-{next(numbers)}"
            return np.memmap(path, array.dtype, "w+", shape=shape)

        def export(self, array: Any) -> tuple[bytes, int] | None:
            base = _base_of(array)
            if not isinstance(base, np.memmap) or not array.flags.c_contiguous:
                return None
            name = Path(str(base.filename)).name.encode()
            offset = array.ctypes.data - base.ctypes.data
            return name.ljust(64, b"\0"), offset

        def copy_peer(self, array: Any, handle: bytes, offset_bytes: int) -> Callable[[], None]:
            path = folder / handle.rstrip(b"\0").decode()
            owner = Path("/proc") / path.name.partition("-")[0]
            if not owner.exists():
                raise InvalidArgument("the memory is of a process that is gone")
            mark = path.with_suffix(f".{os.getpid()}")
            mark.touch(exist_ok=False)
            memory = np.memmap(path, np.uint8, "r")
            _wait_for_no(folder / "gate")
            part = memory[offset_bytes : offset_bytes + array.nbytes]
            array[...] = part.view(array.dtype).reshape(array.shape)

            def close() -> None:
                _wait_for_no(folder / "late")
                mark.unlink()

            return close

    return CardBackend(index)


def _base_of(array: Any) -> Any:
    """Return the array whose memory a view shows."""
    while hasattr(array.base, "base"):
        array = array.base
    return array


def _wait_for_no(path: Path) -> None:
    while path.exists():
        time.sleep(0.001)
