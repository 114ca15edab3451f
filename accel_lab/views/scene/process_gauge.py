"""What a process uses of this machine, as /proc reports it: its share of the CPU, its memory."""

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from accel_lab.compute.events.samples import Reading
from accel_lab.compute.machine.host_memory import host_memory_bytes
from accel_lab.views.scene.fact_lines import sendable

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STAT_BYTES = 4096
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CPU, _MEMORY = "process CPU", "process memory"


class _Used(NamedTuple):
    """What a process has used: CPU seconds up to `at`, monotonic; its memory; when it began."""

    at: float
    cpu_s: float
    resident_bytes: int
    age_s: float


class ProcessGauge:
    """Reads processes; remembers each one's last reading, for its share since then.

    Parameters:
        proc: where the kernel tells of processes.
    """

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._before: dict[int, _Used] = {}
        self._cores = len(os.sched_getaffinity(0))
        self._limit_bytes = host_memory_bytes()

    def read(self, pid: int | None) -> tuple[Reading, Reading]:
        """Return the CPU share, 100 % a core, and the resident memory of a process."""
        if pid is None:
            return _missing("there is no process now")
        try:
            used = self._used(pid)
        except (OSError, ValueError, IndexError):
            self._before.pop(pid, None)
            return _missing(f"process {pid} is gone")
        before = self._before.get(pid)
        self._before[pid] = used
        spent, passed, since = used.cpu_s, used.age_s, ", so far"
        if before is not None and used.at > before.at:
            spent, passed, since = used.cpu_s - before.cpu_s, used.at - before.at, ""
        share = round(100 * spent / passed, 1) if passed > 0 else None
        return (
            Reading(_CPU, share, "%", 100.0 * self._cores, f"100 % a core{since}"),
            Reading(_MEMORY, used.resident_bytes, "B", self._limit_bytes, "resident"),
        )

    def retain(self, pids: set[int]) -> None:
        """Forget every other process."""
        for pid in self._before.keys() - pids:
            del self._before[pid]

    def _used(self, pid: int) -> _Used:
        # proc(5): the name in parentheses may hold anything, so fields are counted after it.
        fields = _read(f"{self._proc}/{pid}/stat").rpartition(b")")[2].split()
        user, system, began, pages = (int(fields[i]) for i in (11, 12, 19, 21))
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - began / _TICKS_PER_S
        cpu_s = (user + system) / _TICKS_PER_S
        return _Used(time.monotonic(), cpu_s, pages * _PAGE_BYTES, age)


def _read(path: str) -> bytes:
    """Return what a short file holds, with as few calls as can be: each may hold others up."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _STAT_BYTES)
    finally:
        os.close(file)


def _missing(why: str) -> tuple[Reading, Reading]:
    return Reading(_CPU, None, "%", why=why), Reading(_MEMORY, None, "B", why=why)


def program() -> str:
    """Return what runs in this process: the notebook's file name, else the script's."""
    return str(sendable(_program()))


def _program() -> str:
    # While another thread imports it, it is there without what it holds.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        # Jupyter's server sets it. What a notebook starts inherits it, but is no kernel.
        return Path(os.environ.get("JPY_SESSION_NAME", "")).name or "notebook"
    return Path(sys.argv[0]).name if sys.argv[0] not in {"", "-", "-c"} else "python"
