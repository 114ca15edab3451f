"""The contract of `cutlass.export` and `install`: a file serves where nothing compiles."""

from pathlib import Path

import numpy as np
import pytest

from accel_lab import System, cutlass
from accel_lab.compute.device import Device
from accel_lab.errors import UnsupportedDtype
from tests.conftest import require
from tests.contract.samples import assert_equal, small, value


def _without_headers() -> None:
    """Have this context find no headers of CUTLASS; runs in it."""
    from accel_lab.backends.cuda.jit import nvrtc

    nvrtc.cutlass_headers = lambda: None


def test_a_product_needs_no_headers_where_its_kernel_is_installed(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernels.zip"
    if not device.name.startswith("gpu"):
        with pytest.raises(UnsupportedDtype, match="compiles nothing for a product"):
            cutlass.export(device, path)
        return
    require("cutlass")
    a, b = small(0, (64, 48), "float32"), small(1, (48, 24), "float32")
    assert_equal(value(device, cutlass.gemm(*map(device.put, (a, b)))), a @ b)
    cutlass.export(device, path)
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(tmp_path / "cache"))
    with System("cuda", devices=1) as lab:
        (other,) = lab.devices
        other.run(_without_headers).result(timeout_s=60)
        assert cutlass.install(other, path) >= 1
        assert np.array_equal(value(other, cutlass.gemm(*map(other.put, (a, b)))), a @ b)
