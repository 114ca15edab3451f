"""The user's own kernels on a real card: faults, shared memory, CUDA's headers, the cache."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, blas, jit
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import CompileError, ContextLost, InvalidArgument
from tests.project import ROOT

pytestmark = pytest.mark.gpu

WAIT_S = 120.0
FILL = "__global__ void fill(float* x, float v) { x[threadIdx.x] = v; }"
SECOND_PROCESS = """
import sys
from accel_lab import System, jit
with System("cuda", devices=1) as lab:
    facts = jit.compile(lab.devices[0], sys.argv[1], "fill").inspect().result()
    print(facts.cached)
"""


def value(device: Device, ref: Any) -> Any:
    return device.get(ref).result(timeout_s=WAIT_S)


@pytest.fixture
def fragile() -> Iterator[tuple[System, Device]]:
    """Open a card whose context a test may lose."""
    with System("cuda", devices=1, max_restarts=100) as lab:
        yield lab, lab.devices[0]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("x[1ll << 40] = 1;", {"CUDA_ERROR_ILLEGAL_ADDRESS"}),
        ("*(float*)((char*)x + 1) = 1;", {"CUDA_ERROR_MISALIGNED_ADDRESS"}),
        ("__trap();", {"CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION"}),
        ("assert(x == nullptr);", {"CUDA_ERROR_ASSERT"}),
    ],
)
def test_a_kernel_that_faults_costs_its_context_only(
    fragile: tuple[System, Device], body: str, names: set[str]
) -> None:
    _, gpu = fragile
    good = jit.compile(gpu, FILL, "fill").result(WAIT_S)
    bad = jit.compile(gpu, f"__global__ void f(float* x) {{ {body} }}", "f").result(WAIT_S)
    zeros = array.zeros(gpu, (4,), "float32").result(WAIT_S)
    with pytest.raises(ContextLost) as caught:  # alone, so it is not tried again
        bad(1, 1, (zeros,)).result(WAIT_S)
    assert caught.value.name in names
    assert gpu.generation == 2
    x = array.zeros(gpu, (4,), "float32")
    good(1, 4, (x, 3)).result(WAIT_S)  # compiled again by itself
    assert value(gpu, x).tolist() == [3] * 4


def test_a_second_process_finds_the_cubin(gpu: Device) -> None:
    source = f"// {os.getpid()}\n{FILL}"
    assert not jit.compile(gpu, source, "fill").inspect().result(WAIT_S).cached
    done = subprocess.run(
        [sys.executable, "-c", SECOND_PROCESS, source],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True"]


@pytest.mark.parametrize("size_bytes", [40 << 10, 64 << 10, 96 << 10, 1024])
def test_dynamic_shared_memory_goes_beyond_48_kib(gpu: Device, size_bytes: int) -> None:
    source = """__global__ void f(int* y, int n) {
      extern __shared__ int s[];
      for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
      __syncthreads();
      if (threadIdx.x == 0) *y = s[n - 1];
    }"""
    y, n = array.zeros(gpu, (1,), "int32"), size_bytes // 4
    jit.compile(gpu, source, "f")(1, 256, (y, n), shared_bytes=size_bytes).result(WAIT_S)
    assert value(gpu, y)[0] == n - 1


def test_a_kernel_with_many_registers_refuses_blocks_that_do_not_fit(gpu: Device) -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    body = "".join(f"double {c} = x[{i}]; " for i, c in enumerate(names.replace("x", "")))
    source = f"__global__ void __launch_bounds__(128) f(double* x) {{ {body} x[0] = a * b + z; }}"
    kernel = jit.compile(gpu, source, "f")
    x = array.zeros(gpu, (64,), "float64")
    most = kernel.inspect().result(WAIT_S).numbers["max threads"]
    kernel(1, min(most, 128), (x,)).result(WAIT_S)
    if most < 1024:
        with pytest.raises(InvalidArgument, match=f"runs at most {most}"):
            kernel(1, 1024, (x,)).result(WAIT_S)


def test_half_precision_headers_are_found(gpu: Device) -> None:
    source = """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void f(const __half* x, __half by, __nv_bfloat16* y) {
      y[threadIdx.x] = __float2bfloat16(__half2float(__hmul(x[threadIdx.x], by)));
    }"""
    x = np.arange(8, dtype=np.float16)
    y = array.zeros(gpu, (8,), "bfloat16")
    kernel = jit.compile(gpu, source, "f")
    kernel(1, 8, (gpu.put(x), 1.5, y)).result(WAIT_S)
    np.testing.assert_array_equal(
        value(gpu, y), (x * np.float16(1.5)).astype(numpy_dtype("bfloat16"))
    )
    with pytest.raises(InvalidArgument, match=r"float32\[8\].*const __half\*"):
        kernel(1, 8, (gpu.put(x.astype("f")), 1.5, y)).result(WAIT_S)


def test_cooperative_groups_are_found(gpu: Device) -> None:
    source = """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __global__ void f(int* y) {
      auto tile = cg::tiled_partition<32>(cg::this_thread_block());
      int sum = tile.thread_rank();
      for (int step = 16; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
      if (tile.thread_rank() == 0) *y = sum;
    }"""
    y = array.zeros(gpu, (1,), "int32")
    jit.compile(gpu, source, "f")(1, 32, (y,)).result(WAIT_S)
    assert value(gpu, y)[0] == 31 * 32 // 2


def test_a_launch_is_ordered_with_other_streams_under_load(gpu: Device) -> None:
    """Large products on the blas stream, sums of them by a kernel on jit's, and back."""
    source = """__global__ void add(const float* x, float* y, int n) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] += x[i];
    }"""
    n = 1024
    add = jit.compile(gpu, source, "add")
    a = gpu.put(np.eye(n, dtype="f"))
    x, total = gpu.put(np.ones((n, n), "f")), array.zeros(gpu, (n, n), "float32")
    for _ in range(20):
        product = blas.gemm(a, x)
        add(64, 256, (product, total, n * n))
        blas.scal(product, 0.0, out=product)
    assert (value(gpu, total) == 20).all()


def test_a_compile_error_is_nvrtc_s_with_the_user_s_line(gpu: Device) -> None:
    with pytest.raises(CompileError, match=r'f\.cu\(2\): error: identifier "nowhere"'):
        jit.compile(gpu, "\n__global__ void f(int* y) { *y = nowhere; }", "f").result(WAIT_S)


def test_modules_are_unloaded_when_nobody_can_launch_them(gpu: Device) -> None:
    """Twenty kernels with 8 MiB each, given up one after another, do not add up."""

    def free() -> int:
        import cupy

        cupy.cuda.runtime.deviceSynchronize()
        return int(cupy.cuda.runtime.memGetInfo()[0])

    source = "__device__ char much[8 << 20];\n" + FILL
    x = array.zeros(gpu, (4,), "float32")
    for i in range(3):
        jit.compile(gpu, f"// {i}\n{source}", "fill")(1, 4, (x, i)).result(WAIT_S)
    before = gpu.run(free).result(WAIT_S)
    for i in range(3, 23):
        jit.compile(gpu, f"// {i}\n{source}", "fill")(1, 4, (x, i)).result(WAIT_S)
    assert gpu.run(free).result(WAIT_S) > before - (64 << 20)
