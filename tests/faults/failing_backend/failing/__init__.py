"""The host backend, which fails where a plan in the environment says so.

`ACCEL_LAB_TEST_PLAN` names a folder; in it `open`, `upload`, `download` and `map` hold a word for
each time: what happens then. Beyond the last word all goes well.
"""

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Any

from accel_lab.backends.host import SUPPORT, device_name, preload, process_keeper
from accel_lab.errors import BackendUnavailable

__all__ = [
    "SUPPORT",
    "available",
    "device_count",
    "device_name",
    "open_backend",
    "preload",
    "process_keeper",
]

PLAN = "ACCEL_LAB_TEST_PLAN"
RAISES = {
    error.__name__: error
    for error in (AttributeError, BackendUnavailable, NameError, RuntimeError, TypeError)
}


def available() -> str | None:
    """Return None: it can always run."""
    return None


def device_count() -> int:
    """Return how many devices there are."""
    return 4


def step(phase: str) -> None:
    """Do what the plan has for this time."""
    path = Path(os.environ[PLAN]) / phase
    if not path.exists():
        return
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        word, *rest = file.read().split() or [""]
        file.seek(0)
        file.truncate()
        file.write(" ".join(rest))
    if word in RAISES:
        raise RAISES[word](f"planned for {phase}")
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "exit":
        os._exit(3)
    elif word == "sleep":
        time.sleep(0.5)
    elif word in {"gate", "late"}:
        while not (path.parent / "go").exists():
            time.sleep(0.01)
        if word == "late":
            os.kill(os.getpid(), signal.SIGKILL)


def open_backend(index: int) -> Any:
    """Open the host, wrapped."""
    from accel_lab.backends.host.device import HostBackend

    class FailingBackend(HostBackend):
        """Fails where the plan says so."""

        def upload(self, array: Any, offset_bytes: int, source: Any) -> None:
            step("upload")
            super().upload(array, offset_bytes, source)

        def download(self, array: Any, target: Any) -> None:
            step("download")
            super().download(array, target)

        def map_segment(self, view: Any) -> None:
            step("map")
            super().map_segment(view)

    step("open")
    return FailingBackend(index)
