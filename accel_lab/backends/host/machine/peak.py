"""The most memory that this process has had, from the kernel's own high-water mark.

NumPy's arrays can be told apart from the rest only by `tracemalloc`, which makes each allocation
many times as slow; the resident set of the process costs nothing, and has all that was touched.
"""

from collections.abc import Callable
from pathlib import Path

from accel_lab.compute.execution.backend import Peak
from accel_lab.compute.machine import host_heap

_PROCESS = Path("/proc/self")
_RESET_MARK = "5"  # to `clear_refs`, as proc(5) says


def watch_peak() -> Callable[[], Peak | None]:
    """Begin to watch; what this returns ends that, and tells. None where there is no such mark."""
    host_heap.give_back()  # what is taken from there would not be seen
    try:
        (_PROCESS / "clear_refs").write_text(_RESET_MARK)
        before = _resident("VmRSS")
    except OSError:
        return lambda: None

    def tell() -> Peak | None:
        most = _resident("VmHWM")
        return None if before is None or most is None else Peak(before, most, "resident")

    return tell


def _resident(name: str) -> int | None:
    for line in (_PROCESS / "status").read_text().splitlines():
        label, _, rest = line.partition(":")
        if label == name:
            return int(rest.split()[0]) * 1024
    return None
