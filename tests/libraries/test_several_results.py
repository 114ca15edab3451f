"""Messages with several results, by a library that is added to a copy of the project."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.project import ROOT

TRIAL = Path(__file__).parent / "trial"
PLACES = {
    "library.py": "accel_lab/libraries/trial.py",
    "host.py": "accel_lab/backends/host/trial.py",
    "cuda.py": "accel_lab/backends/cuda/trial.py",
    "scenarios.py": "test_scenarios.py",
}


def test_its_scenarios_pass(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "accel_lab", tmp_path / "accel_lab", ignore=ignored)
    for name, place in PLACES.items():
        shutil.copy(TRIAL / name, tmp_path / place)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    done = subprocess.run(
        [*command, "test_scenarios.py"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
