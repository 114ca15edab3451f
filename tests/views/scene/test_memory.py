"""What a million events leave behind: the tapes, the scene and the widget of a lab are bounded."""

import json
import subprocess
import sys

import pytest

from tests.project import ROOT
from tests.views.scene import million

pytest.importorskip("anywidget", reason="anywidget comes with the lab extra")

pytestmark = [pytest.mark.slow, pytest.mark.whole, pytest.mark.timeout(600)]

GROWTH_MIB = 16
"""After the first 100 000 events; what is kept of them is complete by then."""


def test_a_million_events_hold_the_kernels_memory_flat() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.views.scene.million"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["slices"] == million.EVENTS * (million.BATCH - million.FACTS) // million.BATCH
    resident = found["resident_mib"]
    assert resident[str(million.EVENTS)] - resident["100000"] < GROWTH_MIB, resident
