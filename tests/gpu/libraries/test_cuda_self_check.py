"""`accel-lab gpu-test` on a card, as its users run it."""

import json
import subprocess
import sys

import pytest

from accel_lab.backends.cuda.support import SUPPORT
from accel_lab.gpu_test.messages import MESSAGES
from accel_lab.gpu_test.together import ALL_REDUCE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


def test_all_that_the_table_says_ran_and_is_right() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "accel_lab.cli", "gpu-test", "--devices", "1", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
    )
    told = json.loads(done.stdout)
    assert [one for one in told["outcomes"] if one["state"] != "right"] == []
    assert done.returncode == 0
    assert told["backend"] == "cuda"
    ran = {(one["name"], one["dtype"]) for one in told["outcomes"]}
    assert ran >= {(name, dtype) for name in (*MESSAGES, ALL_REDUCE) for dtype in SUPPORT[name]}
