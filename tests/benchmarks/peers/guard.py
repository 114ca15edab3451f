"""The process above a peer's: nothing that the peer starts or writes outlives it.

`python guard.py COMMAND` runs a command with a folder of its own for temporary files. Whatever
processes it leaves behind when it ends become this process's children, whichever session they
have moved to, and are killed. SIGTERM, which also comes when the benchmark's process dies, kills
the command too.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TRACKER = b"multiprocessing.resource_tracker"
TRACKER_S = 3.0


def main(command: list[str]) -> int:
    """Run a command, clean up after it, and return its exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_CHILD_SUBREAPER, 1), (PR_SET_PDEATHSIG, signal.SIGTERM)):
        if libc.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    signal.signal(signal.SIGTERM, _leave)
    with TemporaryDirectory(prefix="accel-lab-peer-") as folder:
        try:
            running = subprocess.Popen(command, env=os.environ | {"TMPDIR": folder})
            return running.wait()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            end_children()


def _leave(_: int, __: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def end_children() -> None:
    """Kill every child and what those leave, and reap them.

    Multiprocessing's resource tracker removes shared memory and semaphores when the processes
    that use it are gone, so it gets a moment to do that.
    """
    give_up = time.monotonic() + TRACKER_S
    while True:
        for pid in children(os.getpid()):
            if TRACKER not in command_of(pid) or time.monotonic() > give_up:
                os.kill(pid, signal.SIGKILL)
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not reaped:
            time.sleep(0.01)


def children(of: int) -> Iterator[int]:
    """Give the processes whose parent this is, the dead that are not reaped among them."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == of:
                yield int(folder.name)


def command_of(pid: int) -> bytes:
    """Return the command line of a process, empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
