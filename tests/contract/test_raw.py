"""The contract of `raw`: a vendor's handle for the user's code, or a refusal by name."""

import threading
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from accel_lab import blas, raw
from accel_lab.compute.device import Device
from accel_lab.errors import BackendUnavailable, InvalidArgument, UserCodeError
from tests.contract.samples import value

WAIT_S = 60.0
VENDORS = {
    "cublas": "cuBLAS",
    "cublas_lt": "cuBLASLt",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "cudnn": "cuDNN",
    "stream": "stream",
}


def ask(name: str) -> int:
    handle: int = getattr(raw, name)()
    return handle


@pytest.mark.parametrize("name", VENDORS)
def test_a_device_has_the_handle_or_says_what_it_lacks(device: Device, name: str) -> None:
    answer = device.run(ask, name)
    without_cudnn = name == "cudnn" and device.run(find_spec, "cudnn").result(WAIT_S) is None
    if device.name.startswith("cpu") or without_cudnn:
        with pytest.raises(UserCodeError, match=f"no .*{VENDORS[name]}") as failed:
            answer.result(WAIT_S)
        assert isinstance(failed.value.__cause__, BackendUnavailable)
    else:
        assert answer.result(WAIT_S) != 0 or name == "stream"


def test_cufft_has_plans_alone(device: Device) -> None:
    with pytest.raises(UserCodeError, match="cuFFT has no handle, only plans") as failed:
        device.run(ask, "cufft").result(WAIT_S)
    assert isinstance(failed.value.__cause__, InvalidArgument)


@pytest.mark.parametrize("name", VENDORS)
def test_in_the_notebook_there_is_none(name: str) -> None:
    with pytest.raises(
        InvalidArgument, match=rf"raw\.{name}\(\) is for code that runs on a device"
    ):
        ask(name)


def elsewhere(call: Callable[[], Any]) -> str:
    """Call on another thread, and return what it raised."""
    said: list[str] = []

    def run() -> None:
        try:
            said.append(str(call()))
        except InvalidArgument as error:
            said.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return said[0]


def test_another_thread_is_refused(device: Device) -> None:
    said = device.run(elsewhere, raw.cublas).result(WAIT_S)
    assert "on the thread that runs it" in said


def multiply(a: Any, b: Any) -> Any:
    """Multiply two float64 matrices by cuBLAS, with the modes left changed."""
    import cupy
    from nvmath.bindings import cublas

    out = cupy.empty((b.shape[1], a.shape[0]), "float64")  # by columns
    one, zero = np.ones(1), np.zeros(1)
    n, k, m = b.shape[1], a.shape[1], a.shape[0]
    handle = raw.cublas()
    at = (b.data.ptr, n, a.data.ptr, k, zero.ctypes.data)
    cublas.dgemm(handle, 0, 0, n, m, k, one.ctypes.data, *at, out.data.ptr, n)
    cublas.set_pointer_mode(handle, 1)
    return out.reshape(m, n)


def test_a_product_by_the_handle_is_right_and_so_are_those_after_it(device: Device) -> None:
    if device.name.startswith("cpu"):
        pytest.skip("host has no handle")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 7)), rng.standard_normal((7, 3))
    x, y = device.put(a), device.put(b)
    for _ in range(3):
        got = device.run(multiply, x, y, writes=())
        np.testing.assert_allclose(value(device, got), a @ b)
        np.testing.assert_allclose(value(device, blas.gemm(x, y, alpha=2.0)), 2 * (a @ b))
