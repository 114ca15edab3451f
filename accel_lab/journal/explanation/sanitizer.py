"""What NVIDIA's compute-sanitizer reports of the messages that ended a context.

They are run again by a process of its own, under `compute-sanitizer --tool memcheck`, with each
buffer an allocation by itself, so that an access just behind one is seen, too.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from accel_lab.compute.process.interpreter import interpreter
from accel_lab.compute.process.spawner import exit_name
from accel_lab.errors import JournalUnavailable
from accel_lab.journal.journal import Journal

TOOL = "compute-sanitizer"
LIMIT_S = 120.0
NOT_ASKED = "not asked; lab.explain(sanitize=True) does, in some seconds"
_OPTIONS = (
    *("--tool", "memcheck", "--target-processes", "all"),
    *("--show-backtrace", "no", "--print-limit", "1"),
)
_MARK = "========="
_NOTHING = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "Target application", "Saved host", "Host Frame")


def find() -> str | None:
    """Return the path of compute-sanitizer, which comes with the CUDA toolkit; None without it."""
    toolkit = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return shutil.which(TOOL) or shutil.which(TOOL, path=str(Path(toolkit) / "bin"))


def report(journal: Journal, backend: str, device: str, index: int) -> str:
    """Return what memcheck says of the last loss of a device, for people; blocks for seconds.

    Any thread. The journal goes to a temporary file, and the process and what it started are gone
    when this returns.

    Raises:
        JournalUnavailable: compute-sanitizer is not installed, or the file cannot be written.
    """
    tool = find()
    if tool is None:
        raise JournalUnavailable(f"{TOOL}, of the CUDA toolkit, was not found")
    with tempfile.TemporaryDirectory(prefix="accel_lab_") as folder:
        recorded, log = Path(folder) / "journal.jsonl", Path(folder) / "log"
        journal.to_jsonl(recorded)
        again = (interpreter(), "-P", "-m", "accel_lab.explain_process")
        which = (str(recorded), backend, device, str(index))
        ended = _run([tool, *_OPTIONS, "--log-file", str(log), *again, *which])
        told = log.read_text(errors="replace") if log.exists() else ""
    return summary(told) or f"{ended}, and {TOOL} found no error"


def summary(log: str) -> str:
    """Return the first finding of a log without its marks; empty when there is none."""
    found: list[str] = []
    for line in log.splitlines():
        text = line.removeprefix(_MARK).strip()
        if not line.startswith(_MARK) or text.startswith(_NOTHING):
            continue
        if text:
            found.append(text)
        elif found:
            break
    return "\n".join(found)


def _run(command: list[str]) -> str:
    """Run a command and what it starts to its end, or for as long as it may; say how it ended."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    process = subprocess.Popen(  # noqa: S603 - a tool of the vendor's, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"the messages ran for more than {LIMIT_S:g} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        return ": ".join(("the process ended with " + exit_name(process.returncode), *last))
    return "the messages ran to their end"
