"""The self-check on `host`: it runs whole, covers the table, and notices what is wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.backends.cuda.support import SUPPORT as CUDA
from accel_lab.backends.host.support import SUPPORT as HOST
from accel_lab.compute.device import Device
from accel_lab.errors import BackendUnavailable, InvalidArgument
from accel_lab.gpu_test import run
from accel_lab.gpu_test.messages import MESSAGES, Operands, require_near
from accel_lab.gpu_test.outcome import Outcome, Wrong
from accel_lab.gpu_test.report import Report
from accel_lab.gpu_test.suite import UNTRIED, _outcome, unchecked
from accel_lab.gpu_test.together import ALL_REDUCE, DEVICES, fault
from accel_lab.library_modules import LIBRARIES
from tests.project import ROOT


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "accel_lab.cli", "gpu-test", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_all_of_it_is_right_on_host_and_every_dtype_of_the_table_ran() -> None:
    done = command("--backend", "host", "--json")
    told = json.loads(done.stdout)
    outcomes = told["outcomes"]
    assert [one for one in outcomes if one["state"] != "right"] == []
    assert done.returncode == 0
    assert told["backend"] == "host"
    assert list(told["devices"]) == ["cpu0"]
    ran = {(one["name"], one["dtype"]) for one in outcomes}
    promised = {(name, dtype) for name in (*MESSAGES, ALL_REDUCE) for dtype in HOST[name]}
    assert ran == promised | {(name, "") for name in (*DEVICES, "replay")}
    assert {name.partition(".")[0] for name, _ in promised} == set(LIBRARIES) - UNTRIED


@pytest.mark.parametrize("table", [HOST, CUDA])
def test_every_library_of_a_table_is_tried(table: dict[str, frozenset[str]]) -> None:
    assert unchecked(table) == ()
    assert unchecked({**table, "later.Thing": frozenset({"float32"})}) == ("later",)
    assert unchecked({**table, "fft.C2C": frozenset()}) == ("fft",)


def test_it_does_not_pass_without_a_gpu() -> None:
    try:
        System("cuda", 1).close()
    except BackendUnavailable:
        done = command()
        assert done.returncode == 1
        assert done.stdout == ""
        assert "the cuda backend cannot run here" in done.stderr
    else:
        pytest.skip("there is a GPU")


def test_what_could_fall_back_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="backend"):
        run("auto")


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with System("host", 1, max_restarts=10) as lab:
        yield lab.devices[0]


@pytest.mark.parametrize(
    ("exact", "dtype", "says"),
    [
        (np.array([1, 2, 4]), "int32", "off by 1"),
        (np.array([1, 2, 3, 4]), "int32", r"int32\[3\], expected int32\[4\]"),
        (np.array([1, 2, 3]), "int64", r"int32\[3\], expected int64\[3\]"),
        (np.array([1, 2, np.nan]), "int32", "off by nan"),
    ],
)
def test_what_is_not_near_is_wrong(device: Device, exact: Any, dtype: str, says: str) -> None:
    ref = device.put(np.array([1, 2, 3], np.int32))
    with pytest.raises(Wrong, match=says):
        require_near(device, ref, exact, dtype)


def test_a_result_of_another_message_is_noticed(device: Device) -> None:
    """A backend that answers each product with its transpose would not pass."""
    on = Operands(device, "float32", np.random.default_rng(0))
    x = on.draw(8, 8)
    with pytest.raises(Wrong, match="off by"):
        require_near(device, device.put(x.T.copy()), x, "float32")


def test_a_fault_that_costs_no_context_is_noticed(device: Device) -> None:
    with System("host", 1) as lab:
        on = lab, lab.devices[0], np.random.default_rng(0)
        found = _outcome("fault", "", "cpu0", lambda: fault(*on, kind="library"))
    assert found.state == "failed"
    assert "LibraryError" in found.said


def test_an_error_is_a_row_and_the_next_check_runs(device: Device) -> None:
    def missing() -> None:
        raise KeyError("no such thing")

    found = _outcome("blas.Gemm", "float32", "cpu0", missing)
    assert (found.state, found.said) == ("failed", "KeyError: 'no such thing'")


def test_nothing_that_ran_is_no_success() -> None:
    right = Outcome(name="blas.Gemm", dtype="float32", device="gpu0", state="right", seconds=0.1)
    wrong = Outcome(
        name="blas.Gemm", dtype="float64", device="gpu0", state="wrong", said="off", seconds=0.1
    )

    def report(*outcomes: Outcome, unchecked: tuple[str, ...] = ()) -> Report:
        return Report(
            version="1", backend="cuda", devices={}, outcomes=outcomes, unchecked=unchecked
        )

    assert report(right).ok
    assert not report().ok
    assert "nothing ran" in str(report())
    assert not report(right, unchecked=("fft",)).ok
    assert "nothing of fft was tried" in str(report(right, unchecked=("fft",)))
    assert not report(right, wrong).ok
    assert "float64 wrong: off" in str(report(right, wrong))
    assert "1 of 2 checks not right" in str(report(right, wrong))
