"""The front end's own tests, which need Node and nothing else."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("tests/widgets/**/*.test.mjs")), ids=lambda p: p.name
)
def test_front_end_passes_its_tests(path: Path) -> None:
    require("node")
    node = shutil.which("node")
    assert node
    done = subprocess.run(
        [node, "--test", path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
