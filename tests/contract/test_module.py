"""The contract of `libraries.module`: several kernels of one source, their variables, refusals."""

import re
from typing import Any

import numpy as np
import pytest

from accel_lab import array, jit, module
from accel_lab.compute.device import Device
from accel_lab.errors import (
    CompileError,
    DependencyFailed,
    InvalidArgument,
    StaleRef,
    UnsupportedDtype,
)
from accel_lab.system import System
from tests.contract.samples import value

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0
SOURCE = """
__constant__ float weights[4];
__device__ int calls = 3;
// __global__ void not_this(int* x) {}
__global__ void scale(float* x) { x[threadIdx.x] *= weights[threadIdx.x]; }
namespace inner {
extern "C" __global__ __launch_bounds__(256) void add(float* y, const float* x, int n) {
  if (threadIdx.x < n) y[threadIdx.x] += x[threadIdx.x];
  if (threadIdx.x == 0) ++calls;
}
}
static __global__ void count(int* x) { x[0] = calls; calls += 100; }
template <class T> __global__ void fill(T* x, T by) { x[threadIdx.x] = by; }
"""
PTX = b".version 8.0\n.target sm_80\n"


@pytest.fixture(scope="module")
def built(device: Device) -> module.Module:
    return module.build(device, SOURCE)


def test_the_kernels_of_a_source_are_found_and_told(built: module.Module) -> None:
    assert built.kernels == ("scale", "inner::add", "count")
    facts = built.facts()
    assert facts.kernels["inner::add"] == ("float*", "const float*", "int")
    assert facts.variables == {"weights": True, "calls": False}
    told = built["scale"].inspect().result(WAIT_S)
    assert (told.name, told.parameters) == ("scale", ("float*",))


def test_kernels_run_and_share_the_variables_with_and_without_buffers(device: Device) -> None:
    made = module.build(device, SOURCE)
    weights, x = np.array([1, 2, 3, 4], "f"), np.full(4, 5, "f")
    made.globals["weights"] = weights
    on, y = device.put(x), array.zeros(device, (4,), "float32")
    made["scale"](1, 4, (on,))
    made["inner::add"](1, 4, (y, on, 3))
    np.testing.assert_array_equal(value(device, y), np.append((x * weights)[:3], 0))
    seen = array.zeros(device, (1,), "int32")
    made["count"](1, 1, (seen,))
    assert value(device, seen)[0] == 4  # `add` has counted
    made.globals["calls"] = np.array([40], "i")
    made["inner::add"](1, 4, (y, on, 3))
    made["count"](1, 1, (seen,))
    assert value(device, seen)[0] == 41
    assert value(device, made.globals["calls"])[0] == 141


def test_another_module_of_the_source_has_variables_of_its_own(device: Device) -> None:
    seen = array.zeros(device, (1,), "int32")
    for _ in range(2):
        made = module.build(device, SOURCE)
        for wanted in (3, 103):
            made["count"](1, 1, (seen,))
            assert value(device, seen)[0] == wanted


def test_instances_of_a_template_are_named(device: Device) -> None:
    made = module.build(device, SOURCE, ["fill<int>", "fill<double>", "count"])
    for kind, dtype in (("int", "int32"), ("double", "float64")):
        x = array.zeros(device, (8,), dtype)
        jit.kernel_of(made, f"fill<{kind}>")(1, 8, (x, 7))
        np.testing.assert_array_equal(value(device, x), np.full(8, 7, dtype))
    assert made.kernels == ("fill<int>", "fill<double>", "count")


def test_arguments_are_those_of_jit(device: Device, built: module.Module) -> None:
    x = array.zeros(device, (4,), "float64")
    with pytest.raises(InvalidArgument, match=r"argument 0 of scale is float64\[4\]"):
        built["scale"](1, 4, (x,)).result(WAIT_S)
    built["scale"].result(WAIT_S)
    with pytest.raises(InvalidArgument, match=r"scale: .* of shared memory"):
        built["scale"](1, 4, (x,), shared_bytes=1 << 30)


def test_a_kernel_that_is_not_there_is_named_with_those_that_are(built: module.Module) -> None:
    with pytest.raises(InvalidArgument, match="no kernel 'sale'; it has: scale, inner::add, count"):
        built["sale"].result(WAIT_S)
    with pytest.raises(InvalidArgument, match="the source tells the parameters of scale"):
        built.kernel("scale", "float*").result(WAIT_S)
    wrong: Any = np.zeros(4)
    with pytest.raises(InvalidArgument, match="variable 'weight'; it has: weights, calls"):
        built.globals["weight"] = wrong


@pytest.mark.parametrize(
    ("source", "names", "said"),
    [
        ("__device__ int f() { return 1; }", None, "the source no __global__ function"),
        (SOURCE, ["scale", "sale"], "nothing in the source is called sale"),
        (SOURCE, ["scale", "scale"], "names has a kernel twice"),
        (SOURCE, ["1"], "name is a kernel's"),
        (5, "f", "source is of type str, and 5 is"),
    ],
)
def test_a_mistake_is_refused_at_the_call(
    device: Device, source: Any, names: Any, said: str
) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(said)):
        module.build(device, source, names)


def test_what_does_not_compile_fails_with_its_line_and_so_do_launches(device: Device) -> None:
    broken = module.build(device, SOURCE.replace("+= 100", "+= hundred"))
    x = array.zeros(device, (1,), "int32")
    with pytest.raises(DependencyFailed) as failed:
        broken["count"](1, 1, (x,)).result(WAIT_S)
    assert isinstance(failed.value.__cause__, CompileError)
    with pytest.raises(CompileError, match=r"module\.cu[(:]12"):
        broken.result(WAIT_S)


def test_what_is_unloaded_is_refused(device: Device) -> None:
    made = module.build(device, SOURCE, "count")
    x = array.zeros(device, (1,), "int32")
    count = made["count"]
    count(1, 1, (x,))
    made.unload()
    assert value(device, x)[0] == 3  # what was sent before is done
    for later in (lambda: count(1, 1, (x,)), lambda: made["count"], made.facts):
        with pytest.raises(StaleRef, match="the module was unloaded"):
            later()


@pytest.mark.parametrize("recover", ["replay", "stale"])
def test_a_module_is_there_again_after_a_fault(backend: Any, recover: Any) -> None:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, recover=recover) as lab:
        device = lab.devices[0]
        made = module.build(device, SOURCE)
        made.globals["weights"] = np.array([1, 2, 3, 4], "f")
        x = device.put(np.ones(4, "f"))
        made["scale"](1, 4, (x,)).result(WAIT_S)
        device.replace()
        if recover == "stale":
            made.globals["weights"] = np.array([1, 2, 3, 4], "f")
            x = device.put(np.array([1, 2, 3, 4], "f"))
        made["scale"](1, 4, (x,)).result(WAIT_S)
        assert value(device, x).tolist() == [1, 4, 9, 16]


def test_binaries_are_refused_by_name_where_there_are_none(device: Device) -> None:
    if not device.name.startswith("cpu"):
        pytest.skip("cuda has them: tests/gpu/libraries/test_cuda_module.py")
    with pytest.raises(UnsupportedDtype, match=r"no module\.Load; compile its CUDA C\+\+ source"):
        module.load(device, PTX)
    with pytest.raises(UnsupportedDtype, match=r"no module\.Binary; the host has no binaries"):
        module.binary(device, SOURCE)


@pytest.mark.parametrize("data", [b"", b"MZ", b"\x7fELF\x02\x01" + bytes(14)])
def test_a_file_of_another_kind_is_refused(device: Device, data: bytes) -> None:
    with pytest.raises(InvalidArgument, match="load takes a cubin, PTX, LTO-IR or a fatbin"):
        module.load(device, data)
