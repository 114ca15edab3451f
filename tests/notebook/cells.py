"""A notebook that is a plain dict, for cells that run inside a real context."""

from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.errors import ContextLost
from accel_lab.notebook.gpu_cell import GpuCells
from tests.shown import gathered

ONES = np.ones((3, 3))


class Notebook:
    """A namespace, and what its cells have shown."""

    def __init__(self, lab: System) -> None:
        self.names: dict[str, Any] = {"np": np}
        self.shown = gathered()
        self.lab = lab
        self.gpu: Device = lab.devices[0]
        self._cells = GpuCells(self.names, lambda name: lab.device(0 if name is None else name))

    def __call__(self, source: str, line: str = "") -> Any:
        """Run a cell; return what its last line shows."""
        before = len(self.shown)
        self._cells.run(line, source)
        return self.shown[-1]["text/plain"] if len(self.shown) > before else None

    def value(self, name: str) -> Any:
        return self.gpu.get(self.names[name]).result()


def lose(notebook: Notebook) -> None:
    """Lose the context, and wait for the next."""
    notebook.lab.flush()
    with pytest.raises(ContextLost):
        notebook.lab.inject("kill").result()
    notebook.lab.ready()


def empty(notebook: Notebook) -> None:
    """Forget all that cells and tests have bound: the notebooks of a process have one namespace."""
    notebook.names.clear()
    notebook(
        "for name in [*globals()]:\n    if name[0] != '_' and name != 'xp':\n"
        "        del globals()[name]",
        "--quiet",
    )
