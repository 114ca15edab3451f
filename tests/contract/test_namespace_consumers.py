"""SciPy, scikit-learn and array-api-compat compute with handles: they ask for a namespace."""

import os
import subprocess
import sys
from typing import Any

from tests.project import ROOT


def test_libraries_that_ask_for_a_namespace_compute_with_handles(backend: Any) -> None:
    name = backend.__name__.rpartition(".")[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.contract.consumers", name],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    families = {line.partition(".")[0] for line in done.stdout.split()}
    assert families == {"signal", "special", "stats", "sklearn", "array_api_compat"}
