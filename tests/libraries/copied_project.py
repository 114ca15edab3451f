"""Scenarios of a throw-away library, in a copy of the project that has it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.project import ROOT


def run_scenarios(folder: Path, library: str, copy: Path, scenarios: str = "scenarios") -> None:
    """Copy the project and a library into `copy`, and run scenarios of the library there.

    They may import what the library's `given.py` has.
    """
    places = {
        "library.py": f"accel_lab/libraries/{library}.py",
        "host.py": f"accel_lab/backends/host/{library}.py",
        "cuda.py": f"accel_lab/backends/cuda/{library}.py",
        f"{scenarios}.py": "test_scenarios.py",
    }
    if (folder / "given.py").exists():
        given = copy / (folder / "given.py").relative_to(ROOT)
        given.parent.mkdir(parents=True)
        shutil.copy(folder / "given.py", given)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "accel_lab", copy / "accel_lab", ignore=ignored)
    for name, place in places.items():
        shutil.copy(folder / name, copy / place)
    path = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    done = subprocess.run(
        [*command, "test_scenarios.py"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=copy,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
