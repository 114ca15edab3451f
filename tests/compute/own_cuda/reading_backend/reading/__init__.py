"""The host backend, which opens another process's memory: files that allocations are.

`ACCEL_LAB_TEST_CARD` names their folder; a handle begins with the number that is an allocation's
name there. While a process has one open there is a file with the process's number behind that name.
Nothing is copied while there is a file `gate`, and nothing done after a copy while there is `late`.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel_lab.backends.host import (
    SUPPORT,
    available,
    device_name,
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
    "preload",
    "process_keeper",
    "versions",
]

CARD = "ACCEL_LAB_TEST_CARD"


def device_count() -> int:
    """Return how many devices there are."""
    return 2


def open_backend(index: int) -> Any:
    """Open the host, with that beside it."""
    import numpy as np

    from accel_lab.backends.host.device import HostBackend

    class ReadingBackend(HostBackend):
        """Keeps open what it has opened."""

        def __init__(self, index: int) -> None:
            super().__init__(index)
            self._opened: dict[bytes, tuple[Any, Path]] = {}
            self.ipc = self

        def copy_in(self, array: Any, handle: bytes, offset_bytes: int) -> None:
            if handle not in self._opened:
                path = Path(os.environ[CARD]) / str(int.from_bytes(handle[:8], "little"))
                mark = path.with_suffix(f".{os.getpid()}")
                mark.touch(exist_ok=False)
                self._opened[handle] = np.memmap(path, np.uint8, "r"), mark
            while (Path(os.environ[CARD]) / "gate").exists():
                time.sleep(0.001)
            memory, _ = self._opened[handle]
            part = memory[offset_bytes : offset_bytes + array.nbytes]
            array[...] = part.view(array.dtype).reshape(array.shape)

        def write_word(self, word: Any, value: int) -> None:
            word.view(np.uint32)[0] = value
            while (Path(os.environ[CARD]) / "late").exists():
                time.sleep(0.001)

        def unmap(self, handle: bytes) -> Callable[[], None] | None:
            opened = self._opened.pop(handle, None)
            return None if opened is None else opened[1].unlink

    return ReadingBackend(index)
