"""What the tests of suspension share: arrays, cells, and a thread that suspends."""

import threading
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import Device
from accel_lab.errors import AccelError
from accel_lab.notebook.gpu_cell import GpuCells
from tests.shown import gathered

WAIT = 60.0
A = np.random.default_rng(0).standard_normal((64, 64))


class Cells:
    """`%%gpu` cells of a notebook that is a dict."""

    def __init__(self, device: Device) -> None:
        self.names: dict[str, Any] = {}
        self.shown = gathered()
        self._cells = GpuCells(self.names, lambda _: device)

    def __call__(self, source: str) -> str:
        self._cells.run("", source)
        return str(self.shown[-1]["text/plain"]) if self.shown else ""


def suspending(device: Device) -> tuple[threading.Thread, list[AccelError]]:
    """Begin to suspend a device on a thread; what it raises comes to the list."""
    outcome: list[AccelError] = []

    def suspend() -> None:
        try:
            device.suspend()
        except AccelError as error:
            outcome.append(error)

    going = threading.Thread(target=suspend)
    going.start()
    return going, outcome


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
