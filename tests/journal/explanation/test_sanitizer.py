"""compute-sanitizer's report in an explanation.

The tool is the vendor's and needs a card, so one that writes its kind of log stands in for it; the
process that it is given runs the recorded messages in earnest.
"""

import os
import stat
from pathlib import Path

import pytest

from accel_lab import System, blas, rng
from accel_lab.errors import ContextLost, JournalUnavailable
from accel_lab.journal.explanation import sanitizer

WAIT = 60.0
LOG = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at astray(float *, long long)+0x60 in f.cu:2
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7f3a00000400 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x2f7a1b] in libcuda.so.1
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure"
========= ERROR SUMMARY: 2 errors
"""
TOOL = """#!/bin/sh
while [ "$1" != --log-file ]; do shift; done
log=$2; shift 2
{body}
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    tool = folder / "bin" / sanitizer.TOOL
    tool.parent.mkdir()
    tool.write_text(TOOL.format(body=body))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CUDA_HOME", str(folder))
    monkeypatch.setenv("PATH", os.defpath)


def lose(lab: System) -> None:
    gpu = lab.devices[0]
    x = rng.uniform(gpu, (8, 8), seed=1)
    blas.gemm(x, x).result(WAIT)
    with pytest.raises(ContextLost):
        lab.inject("segfault").result(WAIT)


def test_the_messages_run_again_under_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs under it is the recorded loss: the same fault ends the context there."""
    (tmp_path / "log").write_text(LOG)
    install(tmp_path, monkeypatch, f'"$@" > {tmp_path}/said 2>&1; cat {tmp_path}/log > "$log"')
    with System("host", max_restarts=100) as lab:
        lose(lab)
        found = lab.explain(sanitize=True)
    assert found.memcheck.splitlines() == [
        "Invalid __global__ write of size 4 bytes",
        "at astray(float *, long long)+0x60 in f.cu:2",
        "by thread (0,0,0) in block (0,0,0)",
        "Access to 0x7f3a00000400 is out of bounds",
    ]
    assert "in f.cu:2" in str(found)
    assert "ended a spare context, too" in (tmp_path / "said").read_text()


def test_a_tool_that_cannot_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = 'echo "no device here" >&2; exit 3'
    install(tmp_path, monkeypatch, body)
    with System("host", max_restarts=100) as lab:
        lose(lab)
        found = lab.explain(sanitize=True)
    assert "exit status 3" in found.memcheck
    assert "no device here" in found.memcheck


def test_what_runs_for_too_long_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child holds the pipe that is read, so that this ends only when the child has."""
    install(tmp_path, monkeypatch, "sleep 1000 & wait")
    monkeypatch.setattr(sanitizer, "LIMIT_S", 0.5)
    with System("host", max_restarts=100) as lab:
        lose(lab)
        assert "ran for more than 0.5 s" in lab.explain(sanitize=True).memcheck


def test_without_the_tool_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath)
    with System("host", max_restarts=100) as lab:
        lose(lab)
        with pytest.raises(JournalUnavailable, match="compute-sanitizer"):
            lab.explain(sanitize=True)
        assert lab.explain().memcheck == ""


def test_a_log_without_a_finding_is_nothing() -> None:
    assert (
        sanitizer.summary("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == ""
    )
