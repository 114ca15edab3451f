"""Processes with a system of their own, as a feed and a dashboard find them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.project import ROOT

SCRIPT = """
import os, signal, sys, time
import accel_lab
from accel_lab import System, blas
from accel_lab.views.feed import feed

feed.FAREWELL_S = 10.0  # a process that stood still for a while says farewell all the same
lab = System("host", name={name!r}).ready()
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Program:
    """A Python process with an open system; it ends with the `with` block, or when told to."""

    def __init__(self, folder: Path, name: str, script: str = "train.py") -> None:
        path = folder / script
        path.write_text(SCRIPT.format(name=name))
        self.process = subprocess.Popen(
            [sys.executable, str(path)],
            cwd=folder,
            env=os.environ | {"ACCEL_LAB_FEED": "1", "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid
        self._expect("ready")

    def run(self, line: str) -> None:
        """Have a line of Python run there, and wait for it."""
        self.begin(line)
        self._expect("done")

    def begin(self, line: str) -> None:
        """Have a line of Python run there."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def _expect(self, said: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == said

    def end(self) -> None:
        """End it as a script ends, and wait."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)

    def kill(self) -> None:
        """Kill it without a warning; nobody waits for it yet."""
        self.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(20)


def eventually(condition: Callable[[], object], timeout_s: float = 20.0) -> float:
    """Ask until it holds; return how long that took, seconds.

    Raises:
        AssertionError: it did not in time.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < timeout_s, f"not within {timeout_s:g} s"
        time.sleep(0.01)
    return time.monotonic() - began
