"""A worker that crashes costs its test, and not the run."""

import os
import subprocess
import sys
from pathlib import Path

from tests.project import ROOT

FILES, CRASHES = 40, 30
PASSES = "def test_one():\n    pass\n\ndef test_two():\n    pass\n"
CRASHES_ONCE = """
import os
import pathlib

def test_one():
    flag = pathlib.Path(__file__).with_name("flag")
    if not flag.exists():
        flag.touch()
        os._exit(1)

def test_two():
    pass
"""


def test_a_run_goes_on_when_a_worker_has_crashed(tmp_path: Path) -> None:
    for number in range(FILES):
        text = CRASHES_ONCE if number == CRASHES else PASSES
        (tmp_path / f"test_{number:02}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    workers = ["-n", "2", "--dist", "loadfile", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *workers],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert f"test_{CRASHES}.py::test_one" in done.stdout, done.stdout + done.stderr
    assert f"1 failed, {2 * FILES} passed" in done.stdout
