"""What other processes hold of a card's memory, as NVML reports it."""

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from cupy.cuda import runtime

MOST = 4


def neighbours(index: int) -> tuple[tuple[str, int], ...]:
    """Return the largest users of a card beside this process, `(name, bytes)`, largest first.

    Empty where NVML does not tell, as in some containers and virtual machines. Any thread.
    """
    try:
        nvml: Any = import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 - not installed, or no permission: nothing is known
        return ()
    try:
        handle = nvml.nvmlDeviceGetHandleByPciBusId(runtime.deviceGetPCIBusId(index))
        found = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError:
        return ()
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()
    known = [(_name(one.pid), one.usedGpuMemory) for one in found if one.pid != os.getpid()]
    sized = [(name, size) for name, size in known if size]
    return tuple(sorted(sized, key=lambda one: -one[1])[:MOST])


def _name(pid: int) -> str:
    try:
        called = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        called = "a process"
    return f"{called} (pid {pid})"
