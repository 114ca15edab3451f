"""Modules of binaries on a real card: every form, linking, faults, unloading."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, module
from accel_lab.compute.device import Device
from accel_lab.errors import CompileError, ContextLost, InvalidArgument, StaleRef

pytestmark = pytest.mark.gpu

WAIT_S = 120.0
SOURCE = """
__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int calls;
__global__ void scale(float* x, const float* by) {
  x[threadIdx.x] *= weights[threadIdx.x] * by[0];
  if (threadIdx.x == 0) ++calls;
}
extern "C" __global__ void count(int* x) { x[0] = calls; }
__global__ void hurt(float* x) { *(float*)16 = 1; }
"""
MAIN = """
extern __device__ float twice(float x);
__global__ void apply(float* y, const float* x, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = twice(x[threadIdx.x]);
}
"""
TWICE = "__device__ float twice(float x) { return 2 * x; }"


def value(device: Device, ref: Any) -> Any:
    return device.get(ref).result(timeout_s=WAIT_S)


@pytest.mark.parametrize("form", ["cubin", "ptx", "lto"])
def test_a_binary_is_made_loaded_and_runs(gpu: Device, form: Any, tmp_path: Path) -> None:
    file = tmp_path / f"kernels.{form}"
    file.write_bytes(module.binary(gpu, SOURCE, form).result(WAIT_S))
    loaded = module.load(gpu, file).result(WAIT_S)
    assert set(loaded.kernels) == {"scale", "count", "hurt"}
    assert loaded.facts().kernels["scale"] == ("float*", "const float*")
    assert loaded["scale"].inspect().result(WAIT_S).numbers["registers"] > 0
    x, by = gpu.put(np.ones(4, "f")), gpu.put(np.full(1, 3, "f"))
    loaded["scale"](1, 4, (x, by))
    assert value(gpu, x).tolist() == [3, 6, 9, 12]
    loaded.globals["weights"] = np.full(4, 2, "f")
    loaded.globals["calls"] = np.array([40], "i")
    loaded["scale"](1, 4, (x, by))
    assert value(gpu, x).tolist() == [18, 36, 54, 72]
    assert value(gpu, loaded.globals["calls"]).tolist() == [41]


def test_types_that_a_symbol_does_not_tell_have_to_be_given(gpu: Device) -> None:
    loaded = module.load(gpu, module.binary(gpu, SOURCE).result(WAIT_S))
    with pytest.raises(InvalidArgument, match=r"does not tell the types .* of count \(of 8 bytes"):
        loaded["count"].result(WAIT_S)
    with pytest.raises(InvalidArgument, match="parameter 0 is 'int', 4 bytes"):
        loaded.kernel("count", "int").result(WAIT_S)
    x = array.zeros(gpu, (1,), "int32")
    loaded.globals["calls"] = np.array([7], "i")
    loaded.kernel("count", "int* x")(1, 1, (x,)).result(WAIT_S)
    assert value(gpu, x)[0] == 7


@pytest.mark.parametrize("forms", [("ptx", "cubin"), ("cubin", "cubin"), ("lto", "lto")])
def test_files_are_linked(gpu: Device, forms: tuple[Any, Any]) -> None:
    files = [
        module.binary(gpu, text, form, linkable=True).result(WAIT_S)
        for text, form in zip((MAIN, TWICE), forms, strict=True)
    ]
    y = array.zeros(gpu, (4,), "float32")
    module.load(gpu, *files)["apply"](1, 4, (y, gpu.put(np.arange(4, dtype="f")), 4))
    assert value(gpu, y).tolist() == [0, 2, 4, 6]
    with pytest.raises(CompileError, match="twice"):
        module.load(gpu, files[0]).result(WAIT_S)


def test_a_cubin_that_is_linked_already_is_refused_beside_others(gpu: Device) -> None:
    whole = module.binary(gpu, SOURCE).result(WAIT_S)
    part = module.binary(gpu, TWICE, linkable=True).result(WAIT_S)
    with pytest.raises(InvalidArgument, match="file 1 is a cubin that is linked already"):
        module.load(gpu, part, whole).result(WAIT_S)


@pytest.mark.parametrize("forms", [("cubin",), ("ptx",), ("cubin", "ptx")])
def test_a_fatbin_is_loaded(gpu: Device, forms: tuple[Any, ...]) -> None:
    nvfatbin = pytest.importorskip("cuda.bindings.nvfatbin")
    try:
        handle = nvfatbin.create([], 0)
    except RuntimeError as error:
        pytest.skip(f"nvFatbin is not installed: {error}")
    card = gpu.run(_capability).result(WAIT_S)
    for form in forms:
        data = module.binary(gpu, SOURCE, form).result(WAIT_S)
        if form == "cubin":
            nvfatbin.add_cubin(handle, data, len(data), card, "a")
        else:
            nvfatbin.add_ptx(handle, data, len(data), card, "a", "")
    fatbin = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, fatbin)
    loaded = module.load(gpu, fatbin)
    x, by = gpu.put(np.ones(4, "f")), gpu.put(np.full(1, 3, "f"))
    loaded.globals["weights"] = np.full(4, 2, "f")
    loaded["scale"](1, 4, (x, by))
    assert value(gpu, x).tolist() == [6, 6, 6, 6]


def _capability() -> str:
    import cupy

    return str(cupy.cuda.Device().compute_capability)


def test_a_module_is_loaded_again_from_its_bytes_after_a_fault() -> None:
    with System("cuda", devices=1, max_restarts=100) as lab:
        gpu = lab.devices[0]
        loaded = module.load(gpu, module.binary(gpu, SOURCE).result(WAIT_S))
        x, by = gpu.put(np.ones(4, "f")), gpu.put(np.full(1, 3, "f"))
        loaded["scale"](1, 4, (x, by)).result(WAIT_S)
        with pytest.raises(ContextLost):
            loaded["hurt"](1, 1, (x,)).result(WAIT_S)
        loaded["scale"](1, 4, (x, by)).result(WAIT_S)
        assert value(gpu, x).tolist() == [9, 36, 81, 144]


def test_what_is_unloaded_gives_its_memory_back_and_is_refused(gpu: Device) -> None:
    loaded = module.load(gpu, module.binary(gpu, SOURCE).result(WAIT_S))
    scale = loaded["scale"].result(WAIT_S)
    x, by = gpu.put(np.ones(4, "f")), gpu.put(np.full(1, 3, "f"))
    scale(1, 4, (x, by))
    loaded.unload()
    assert value(gpu, x).tolist() == [3, 6, 9, 12]
    with pytest.raises(StaleRef, match="was unloaded"):
        scale(1, 4, (x, by))
