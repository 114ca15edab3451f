"""Contexts that are programs of their own, for profilers that follow no forks."""

import os
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.errors import ContextLost

WAIT_S = 60.0


def test_they_do_what_forks_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_LAB_FORK", "0")
    with System("host", devices=1) as lab:
        (device,) = lab.devices
        x = device.put(np.eye(3))
        first = device.run(os.getpid).result(WAIT_S)
        assert "alone" in Path(f"/proc/{first}/cmdline").read_text().split("\0")
        with pytest.raises(ContextLost, match="SIGSEGV"):
            lab.inject("segfault").result(WAIT_S)
        second = device.run(os.getpid).result(WAIT_S)
        assert second != first
        np.testing.assert_array_equal(blas.gemm(x, x).get(timeout_s=WAIT_S), np.eye(3))
    assert not Path(f"/proc/{second}").exists()
