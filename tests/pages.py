"""Programs of pages, run one after the other in one process, which starts once.

Each has a namespace, a folder and an environment of its own, and its systems are closed when it
ends. What it imports stays imported: so one that sets the environment, which is read at an import,
gets a new process. A program that fails or hangs costs the process, and the next one gets another.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.project import ROOT
from tests.with_parent import with_parent

# Compiles what IPython would: `await` may stand at the top level. Who leaves a kernel that never
# ends has the next cell end it, which here comes before the kernel has begun.
RUNNER = """
import ast, asyncio, inspect, json, os, sys, traceback, types, warnings
from accel_lab import default, open_systems
from accel_lab.system import System

def run(source, name):
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    coroutine = eval(code, module.__dict__)
    if inspect.iscoroutine(coroutine):
        asyncio.run(coroutine)

System.finish_s = 0.5
answers = os.fdopen(int(sys.argv[1]), "w")
for line in sys.stdin:
    source, name, folder = json.loads(line)
    environment = dict(os.environ)
    os.chdir(folder)
    failure = ""
    try:
        with warnings.catch_warnings():
            run(source, name)
    except BaseException:
        failure = traceback.format_exc()
    for system in open_systems.running():
        system.end()
    os.environ.clear()
    os.environ.update(environment)
    print(json.dumps(failure), file=answers, flush=True)
"""


class Pages:
    """Runs programs; `close()` ends its process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, source: str, name: str, folder: Path, patience_s: float = 100.0) -> None:
        """Run a program in a folder.

        Raises:
            AssertionError: it raised, or took longer; with its traceback and all that was printed.
        """
        if "os.environ[" in source:
            self.close()
        process = self._process or self._start()
        assert process.stdin is not None
        self._printed.seek(0)
        self._printed.truncate()
        process.stdin.write(json.dumps([source, name, str(folder)]) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([self._answers], [], [], patience_s)
        line = self._answers.readline() if ready else ""
        if line == '""\n':
            return
        failure = json.loads(line) if line else "it ended" if ready else f"no end in {patience_s} s"
        self._printed.seek(0)
        printed = self._printed.read()
        self.close()
        raise AssertionError(f"{name}: {failure}\n{printed}")

    def _start(self) -> subprocess.Popen[str]:
        reading, writing = os.pipe()
        self._answers = os.fdopen(reading)
        self._printed = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close()` closes it
        self._process = subprocess.Popen(
            with_parent(sys.executable, "-W", "error", "-c", RUNNER, str(writing)),
            stdin=subprocess.PIPE,
            stdout=self._printed,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            pass_fds=[writing],
        )
        os.close(writing)
        return self._process

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._answers.close()
        self._printed.close()
