"""Throw-away libraries, in a copy of the project that has them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.project import ROOT, UNFINISHED


def places(library: str) -> dict[str, str]:
    """Return where each file of a library belongs in the copy."""
    return {
        "library.py": f"accel_lab/libraries/{library}.py",
        "host.py": f"accel_lab/backends/host/{library}.py",
        "cuda.py": f"accel_lab/backends/cuda/{library}.py",
    }


def copy_project(folder: Path, library: str, copy: Path) -> None:
    """Copy the project and a library into `copy`, and beside it what its `given.py` has."""
    if (folder / "given.py").exists():
        given = copy / (folder / "given.py").relative_to(ROOT)
        given.parent.mkdir(parents=True)
        shutil.copy(folder / "given.py", given)
    shutil.copytree(ROOT / "accel_lab", copy / "accel_lab", ignore=UNFINISHED)
    for name, place in places(library).items():
        shutil.copy(folder / name, copy / place)


def run_pytest(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a copy, which comes first of all places that have the package."""
    path = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    return subprocess.run(
        [*command, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=copy,
        timeout=110,
        check=False,
    )


def run_scenarios(folder: Path, library: str, copy: Path, scenarios: str = "scenarios") -> None:
    """Copy the project and a library into `copy`, and run scenarios of the library there."""
    copy_project(folder, library, copy)
    shutil.copy(folder / f"{scenarios}.py", copy / "test_scenarios.py")
    # With what keeps one zygote for all of their systems, as the other tests have it.
    done = run_pytest(copy, "-p", "tests.conftest", "test_scenarios.py")
    assert done.returncode == 0, done.stdout + done.stderr


def copy_contract(copy: Path) -> None:
    """Add to a copy what every message of every library has to pass."""
    shutil.copytree(ROOT / "tests" / "contract", copy / "tests" / "contract", ignore=UNFINISHED)
    for name in ("pyproject.toml", "tests/conftest.py", "tests/ports.py"):
        shutil.copy(ROOT / name, copy / name)
