"""A disk that is really full, while a system keeps its journal there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT

PROGRAM = """
import sys
from pathlib import Path

import numpy as np

from accel_lab import System, blas
from accel_lab.journal.events import JournalDropped, JournalFailed, JournalResumed

folder = Path(sys.argv[1])
filler = folder / "filler"
with System("host", journal=folder / "x.journal") as lab:
    gpu = lab.devices[0]
    x = gpu.put(np.ones((4, 4), np.float32))
    lab.flush()
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            print(error.strerror)
    noise = np.random.default_rng(0).integers(0, 255, 1 << 18).astype(np.uint8)
    kept = [gpu.put(noise)]
    failed = lab.events.wait_for(JournalFailed, 60, since=0)
    print(failed.error)
    for _ in range(100):
        x = blas.axpy(x, x)
    print(float(gpu.get(x).result(60)[0, 0]) == 2.0**100)
    filler.unlink()
    lab.events.wait_for(JournalResumed, 60, since=0)
    x = blas.scal(x, 2.0)
    lab.flush()
    print(len(lab.events.history(JournalDropped)), len(lab.journal.filter(name="Axpy")))
    print([entry.name for entry in lab.journal.filter(library="blas")][-2:])
"""


def test_a_disk_that_is_full_is_an_event_and_nothing_is_lost(tmp_path: Path) -> None:
    """In a file system of 2 MiB, which only the program's own process sees."""
    mounted = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=2m none {tmp_path}"
    if subprocess.run([*mounted, mount], capture_output=True, check=False).returncode:
        pytest.skip("a file system of one's own cannot be mounted here")
    done = subprocess.run(
        [*mounted, f'{mount} && exec "$@"', "sh", sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    full, failed, right, counts, last = done.stdout.splitlines()
    assert full == "No space left on device"
    assert "full" in failed
    assert (right, counts, last) == ("True", "0 100", "['Axpy', 'Scal']")
