"""What the tests start ends with them, even if they are killed."""

import signal
import subprocess
import sys

from tests.project import ROOT
from tests.with_parent import with_parent

OWNER = """
import subprocess, sys
from tests.with_parent import with_parent
subprocess.run(with_parent("sh", "-c", "echo runs; exec sleep 100"))
"""


def test_it_ends_with_who_started_it_and_was_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE)
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"runs\n"
        owner.send_signal(signal.SIGKILL)
        rest, _ = owner.communicate(timeout=60)  # until nobody has the pipe any more
    assert rest == b""


def test_it_does_not_begin_once_that_has_ended() -> None:
    python, program, _, *rest = with_parent("echo", "runs")
    another = "1"
    done = subprocess.run(
        [python, program, another, *rest], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
