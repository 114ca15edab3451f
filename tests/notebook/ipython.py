"""A real IPython with one system of its own, for what depends on what IPython keeps."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.compute.residency.resident import ResidentBuffer
from accel_lab.errors import ContextLost
from tests.interactive import Shell, shell


class Lab:
    """A notebook that has a device `gpu`, NumPy as `np`, and what else it is given."""

    def __init__(self, opened: Shell, gpu: Device) -> None:
        self.shell = opened
        self.gpu = gpu
        self.names: dict[str, Any] = opened.ipython.user_ns

    def __call__(self, source: str) -> Any:
        """Run a cell that must not fail; return its value."""
        value = self.shell(source)
        assert self.shell.error is None, self.shell.error
        return value

    def fail(self, source: str) -> BaseException:
        """Run a cell that must fail; return its error."""
        self.shell(source)
        assert self.shell.error is not None
        error: BaseException = self.shell.error
        return error


@contextmanager
def notebook(lab: System) -> Iterator[Lab]:
    """Open a notebook on the first device of a system, which is empty again afterwards."""
    with shell() as opened:
        opened("%load_ext accel_lab\nimport numpy as np")
        opened.ipython.user_ns["gpu"] = lab.devices[0]
        made = Lab(opened, lab.devices[0])
        yield made
        opened("%unload_ext accel_lab")
        opened.ipython.last_execution_result = None
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)
        for row in lab.devices[0].resident:
            if isinstance(row, ResidentBuffer):
                row.free()
            else:
                row.drop()


def lose(lab: System) -> None:
    """Lose the context, and wait for the next."""
    lab.flush()
    with pytest.raises(ContextLost):
        lab.inject("kill").result()
    lab.ready()


def shown(lab: Lab, source: str) -> str:
    """Run a cell, and return what its last line shows."""
    before = len(lab.shell.published)
    lab(f"%%gpu\n{source}")
    return str(lab.shell.published[before]["text/plain"])


def wait_for_file(path: str, *_: Any) -> None:
    """Be busy in a context until a file is there."""
    import time
    from pathlib import Path

    while not Path(path).exists():
        time.sleep(0.01)
