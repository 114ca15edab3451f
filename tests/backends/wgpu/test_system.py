"""A system on wgpu as a user has it: what it chooses, tells, limits and survives."""

import gc
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, backends, blas, fft
from accel_lab.backends import cuda, wgpu
from accel_lab.backends.wgpu.adapters import adapters
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import ContextLost, InvalidArgument, OutOfMemory, UnsupportedDtype
from tests.conftest import require

WAIT_S = 60.0


@pytest.mark.parametrize(
    ("card", "gpu", "chosen"),
    [(True, True, "cuda"), (False, True, "wgpu"), (False, False, "host")],
)
def test_auto_prefers_a_card_then_a_gpu_then_the_host(
    monkeypatch: pytest.MonkeyPatch, *, card: bool, gpu: bool, chosen: str
) -> None:
    monkeypatch.setattr(cuda, "available", lambda: None if card else "no card")
    monkeypatch.setattr(wgpu, "has_hardware", lambda: gpu)
    monkeypatch.setattr(wgpu, "available", lambda: None)
    name, module = backends.load("auto")
    assert name == chosen
    assert isinstance(module, ModuleType)


def test_a_processors_adapter_is_no_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    require("wgpu")
    monkeypatch.setattr(wgpu, "may_have_hardware", lambda: True)
    kinds = {one.kind for one in adapters()}
    assert wgpu.has_hardware() == (kinds != {"CPU"})


def test_the_notebooks_process_opens_no_adapter() -> None:
    require("wgpu")
    code = (
        "import sys; from accel_lab import System\n"
        "with System('wgpu', devices=1) as lab:\n"
        "    assert lab.devices[0].put([1.0]).get()[0] == 1\n"
        "print('wgpu' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.split() == ["False"]


def test_a_buffer_that_the_adapter_cannot_have_is_refused_by_name(device: Device) -> None:
    most = min(adapters()[0].limits["max-buffer-size"], 1 << 36)
    refusal = "a buffer of this adapter has at most|were asked for"
    with pytest.raises((InvalidArgument, OutOfMemory), match=refusal):
        array.zeros(device, (most // 4 + 1,), "float32").result(WAIT_S)
    assert array.zeros(device, (3,)).get().tolist() == [0, 0, 0]


@pytest.mark.slow
def test_a_buffer_beyond_the_adapters_own_binding_is_computed_in_parts(device: Device) -> None:
    most = adapters()[0].limits["max-storage-buffer-binding-size"]
    if most > 1 << 30 or adapters()[0].limits["max-buffer-size"] < 3 * most:
        pytest.skip("its bindings are large, or its buffers hardly larger")
    x = array.full(device, (most // 4 + 1000,), 2, "float32")
    y = x * 3 + 1
    assert y.sum().get() == pytest.approx(7 * x.size, rel=1e-5)
    assert y[-1001:-998].get().tolist() == [7, 7, 7]
    with pytest.raises(
        InvalidArgument, match=r"blas\.Dot: .* a binding of this adapter has at most"
    ):
        blas.dot(x, y)


def test_what_wgpu_lacks_is_refused_by_name(device: Device) -> None:
    x = device.put(np.ones(4))
    with pytest.raises(UnsupportedDtype, match=r"no fft\.R2R"):
        fft.dct(x)
    with pytest.raises(UnsupportedDtype, match=r"no array\.Unary of complex64"):
        array.exp(device.put(np.ones(4, np.complex64)))
    with pytest.raises(UnsupportedDtype, match="no exp of float64"):
        array.exp(x).result(WAIT_S)


def test_what_a_cycle_held_is_used_again(device: Device) -> None:
    def leave(x: Any) -> None:
        cycle: list[Any] = [x.copy() for _ in range(8)]
        cycle.append(cycle)
        del cycle
        gc.collect()

    x = np.arange(5_000.0)
    device.run(leave, device.put(x)).result(WAIT_S)
    kept = [device.put(x + n) for n in range(10)]
    for n, one in enumerate(kept):
        np.testing.assert_array_equal((one + 1).get(), x + n + 1)


def test_every_dtype_comes_back_as_it_went(device: Device) -> None:
    for dtype in ("complex128", "bfloat16", "float8_e5m2", "int8", "bool"):
        x: Any = np.arange(7).astype(numpy_dtype(dtype))
        assert device.put(x)[1::2].get().tobytes() == x[1::2].tobytes()


def test_user_code_has_arrays_that_numpy_copies(device: Device) -> None:
    def double(x: Any) -> Any:
        x[...] = np.asarray(x) + 1
        return np.asarray(x) * 2

    x = device.put(np.arange(3.0))
    assert device.run(double, x).get().tolist() == [2, 4, 6]
    assert x.get().tolist() == [1, 2, 3]


def test_buffers_are_rebuilt_after_the_process_is_killed() -> None:
    require("wgpu")
    with System("wgpu", devices=1) as lab:
        gpu = lab.devices[0]
        x = gpu.put(np.arange(4, dtype=np.float32))
        y = x * 2 + 1
        assert y.get().tolist() == [1, 3, 5, 7]
        with pytest.raises(ContextLost):
            lab.inject("kill", gpu).result(WAIT_S)
        assert (y + x).result(WAIT_S).get().tolist() == [1, 4, 7, 10]
        assert gpu.generation == 2
