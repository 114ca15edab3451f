"""The Python stacks of a context's threads, which py-spy reads from outside."""

import shutil
import subprocess
import sys
from pathlib import Path

from accel_lab.display.install import pip_command
from accel_lab.errors import InvalidArgument, TelemetryUnavailable
from accel_lab.top.snapshot import Snapshot

ANSWER_S = 20.0
CONTEXT = b"accel_lab.context_process"
"""In the command line of every context; a number alone may by now be another process's."""


def stack_of(found: Snapshot, name: str) -> str:
    """Return the stacks of a device's context; blocks while py-spy stops and reads it.

    Parameters:
        name: of the device, `gpu0`, or with its system's, `lab1/gpu0`.

    Raises:
        InvalidArgument: there is no such device, or several, or it has no context.
        TelemetryUnavailable: py-spy is not installed, or may not read that process.
    """
    pids = {
        f"{one.path} in process {one.pid}": one.pid
        for system in found.systems
        if system.state in ("running", "silent")
        for one in system.actors
        if one.pid is not None and f"/{one.path}/".endswith(f"/{name}/context/")
    }
    if not pids:
        raise InvalidArgument(f"{name!r} is no device with a context of a system that runs here")
    if len(pids) > 1:
        raise InvalidArgument(f"{name!r} is several: {', '.join(pids)}; name its system, too")
    return stacks(*pids.values())


def stacks(pid: int) -> str:
    """Return the Python stacks of a context's process.

    Raises:
        InvalidArgument: no context of this machine has this number.
        TelemetryUnavailable: py-spy is not installed, or may not read that process.
    """
    program = _py_spy()
    try:
        is_context = CONTEXT in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        is_context = False
    if not is_context:
        raise InvalidArgument(f"process {pid} is no context on this machine")
    try:
        done = subprocess.run(  # noqa: S603 - py-spy, and a number
            [program, "dump", "--pid", str(pid)],
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_S,
        )
    except subprocess.TimeoutExpired as late:
        raise TelemetryUnavailable(f"py-spy gives no answer within {ANSWER_S:g} s") from late
    if done.returncode != 0:
        raise TelemetryUnavailable(
            f"py-spy cannot read process {pid}: {' '.join(done.stderr.split())}. It needs the "
            "right to trace processes: in a container --cap-add SYS_PTRACE, else "
            "kernel.yama.ptrace_scope=0 or sudo"
        )
    return done.stdout


def _py_spy() -> str:
    """Return the path of py-spy: beside the Python that runs, or on the path.

    Raises:
        TelemetryUnavailable: it is not installed.
    """
    folder = str(Path(sys.executable).parent)
    program = shutil.which("py-spy", path=folder) or shutil.which("py-spy")
    if program is None:
        raise TelemetryUnavailable(
            f"a Python stack needs py-spy. Install it with: {pip_command('install py-spy')}"
        )
    return program
