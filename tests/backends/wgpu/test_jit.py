"""Kernels of WGSL on wgpu: arguments by bindings, order with other libraries, and refusals."""

from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import System, array, jit
from accel_lab.compute.device import Device
from accel_lab.errors import CompileError, DependencyFailed, InvalidArgument
from tests.conftest import require

WAIT_S = 60.0
SCALE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> factor: f32;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) at: vec3<u32>) {
  if (at.x < arrayLength(&y)) { y[at.x] = factor * x[at.x]; }
}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    require("wgpu")
    with System("wgpu", devices=1) as lab:
        yield lab.devices[0]
        lab.check()


def test_a_kernel_takes_buffers_and_numbers_by_its_bindings(device: Device) -> None:
    x = np.arange(1000, dtype=np.float32)
    on, out = device.put(x), array.zeros(device, (1000,))
    kernel = jit.compile(device, SCALE, "scale", language="wgsl")
    kernel(16, 64, (on + 1, out, 2.5)).result(WAIT_S)
    np.testing.assert_array_equal((out + 0).get(), (x + 1) * np.float32(2.5))
    kernel(16, 64, (on, out, 3)).result(WAIT_S)
    np.testing.assert_array_equal(out.get(), x * np.float32(3))
    facts = kernel.inspect().result(WAIT_S)
    assert facts.parameters == ("const float*", "float*", "float")


def test_what_does_not_compile_has_the_compilers_words(device: Device) -> None:
    kernel = jit.compile(device, SCALE.replace("factor *", "factr *"), "scale", language="wgsl")
    with pytest.raises(CompileError, match="factr"):
        kernel.result(WAIT_S)


@pytest.mark.parametrize(
    ("grid", "block", "words"),
    [(1, 32, "@workgroup_size"), (70_000, 64, "65535"), (1, 128, "at most 64")],
)
def test_a_launch_that_cannot_be_is_refused(
    device: Device, grid: int, block: int, words: str
) -> None:
    kernel = jit.compile(device, SCALE, "scale", language="wgsl").result(WAIT_S)
    on, out = device.put(np.ones(4, np.float32)), array.zeros(device, (4,))
    with pytest.raises(InvalidArgument, match=words):
        kernel(grid, block, (on, out, 1.0)).result(WAIT_S)


def test_arguments_that_do_not_fit_are_named(device: Device) -> None:
    kernel = jit.compile(device, SCALE, "scale", language="wgsl")
    wide = device.put(np.ones(4))
    out = array.zeros(device, (4,))
    for args, words in (
        ((wide, out, 1.0), "argument 0 of scale is"),
        ((out, out, 1.0), "WebGPU forbids"),
        ((out, 1.0), "takes 3 arguments"),
        ((1.0, out, 1.0), "argument 0 of scale is 1.0"),
    ):
        with pytest.raises((InvalidArgument, DependencyFailed), match=words):
            kernel(1, 64, args).result(WAIT_S)


def test_each_backend_refuses_the_others_language(device: Device) -> None:
    with pytest.raises(InvalidArgument, match="compiles wgsl, not cuda"):
        jit.compile(device, "__global__ void f() {}", "f").result(WAIT_S)
    with System("host", devices=1) as lab:
        kernel = jit.compile(lab.devices[0], SCALE, "scale", language="wgsl")
        with pytest.raises(InvalidArgument, match="compiles cuda, not wgsl"):
            kernel.result(WAIT_S)


def test_a_language_that_is_none_is_refused_at_the_call(device: Device) -> None:
    with pytest.raises(InvalidArgument, match="may be 'cuda' or 'wgsl'"):
        jit.compile(device, SCALE, "scale", language="glsl")
