"""The contract of `libraries.jit`: what CUDA C++ means, on every backend, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas, jit
from accel_lab.compute.device import Device
from accel_lab.compute.message.builtin import Ping
from accel_lab.errors import CompileError, DependencyFailed, InvalidArgument
from tests.contract.samples import seeds, value

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0

WHERE = """
__global__ void where(unsigned int* at) {
  unsigned int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned int row = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  unsigned int all[6] = {blockIdx.z, blockIdx.y, blockIdx.x, threadIdx.z, threadIdx.y, threadIdx.x};
  for (int i = 0; i < 6; ++i) at[6 * row + i] = all[i];
}
"""
SCALE = """
template <class T, int N> __global__ void scale(const T* __restrict__ x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * N;
}
"""
HEAVY = SCALE + "\n".join(
    f"template __global__ void scale<float, {i}>(const float*, float*, int);" for i in range(300)
)
SUM = """
__inline__ __device__ long long of_warp(long long v) {
  for (int step = warpSize / 2; step > 0; step /= 2) v += __shfl_down_sync(0xffffffffu, v, step);
  return v;
}
__global__ void sum(const int* x, int n, unsigned long long* total) {
  __shared__ long long parts[32];
  long long v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = of_warp(v);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  v = of_warp(threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0);
  if (threadIdx.x == 0) atomicAdd(total, (unsigned long long)v);
}
"""
REVERSE = """
extern "C" __global__ void reverse(float* x) {
  extern __shared__ float turned[];
  turned[blockDim.x - 1 - threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = turned[threadIdx.x];
}
"""
STEP = "__global__ void step(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x] + 1; }"


@pytest.fixture(scope="module")
def where(device: Device) -> jit.Kernel:
    return jit.compile(device, WHERE, "where").result(WAIT_S)


@pytest.fixture(scope="module")
def total_of(device: Device) -> jit.Kernel:
    return jit.compile(device, SUM, "sum").result(WAIT_S)


extents = st.tuples(*[st.integers(1, 4)] * 3)


@settings(max_examples=25)
@given(grid=extents, block=extents)
def test_every_thread_of_a_grid_runs_once_and_knows_where(
    device: Device, where: jit.Kernel, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    shape = grid[::-1] + block[::-1]
    at = array.full(device, (*shape, 6), 99, "uint32")
    where(grid, block, (at,)).result(WAIT_S)
    expected = np.moveaxis(np.indices(shape), 0, -1)
    np.testing.assert_array_equal(value(device, at), expected)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("float", "float32"), ("double", "float64"), ("long long", "int64")]
)
def test_a_template_is_compiled_for_its_arguments(device: Device, kind: str, dtype: str) -> None:
    x = np.arange(1000).astype(dtype)
    y = array.zeros(device, x.shape, dtype)
    kernel = jit.compile(device, SCALE, f"scale<{kind}, -3>")
    kernel(4, 256, (device.put(x), y, x.size)).result(WAIT_S)
    np.testing.assert_array_equal(value(device, y), x * -3)


@settings(max_examples=15)
@given(seed=seeds, n=st.integers(0, 5000), warps=st.integers(1, 32), blocks=st.integers(1, 3))
def test_shuffles_barriers_and_atomics_sum(
    device: Device, total_of: jit.Kernel, seed: int, n: int, warps: int, blocks: int
) -> None:
    x = np.random.default_rng(seed).integers(-1000, 1000, n).astype(np.int32)
    total = array.zeros(device, (1,), "uint64")
    total_of(blocks, 32 * warps, (device.put(x), n, total)).result(WAIT_S)
    assert value(device, total).view(np.int64)[0] == x.sum(dtype=np.int64)


@pytest.mark.parametrize("n", [1, 31, 1024])
def test_dynamic_shared_memory_is_the_block_s(device: Device, n: int) -> None:
    x = np.arange(n, dtype="f")
    on = device.put(x)
    jit.compile(device, REVERSE, "reverse")(1, n, (on,), shared_bytes=4 * n).result(WAIT_S)
    np.testing.assert_array_equal(value(device, on), x[::-1])


def test_headers_and_macros_are_the_caller_s(device: Device) -> None:
    source = '#define size 2\n#include "numbers.h"\n__global__ void f(T* x) { *x = TEN + N; }'
    kernel = jit.compile(
        device,
        source,
        "f",
        options=["-DN=5", "--use_fast_math"],
        headers={"numbers.h": "#define TEN 10\n#define T int\n"},
    )
    x = array.zeros(device, (1,), "int32")
    kernel(1, 1, (x,)).result(WAIT_S)
    assert value(device, x)[0] == 15


def test_launches_are_ordered_with_other_libraries(device: Device) -> None:
    """A buffer for `const T*` is read, one for `T*` is written, whatever stream they are on."""
    kernel = jit.compile(device, STEP, "step")
    x = np.linspace(-1, 1, 64).astype("f")
    y, z = device.put(x), array.zeros(device, x.shape, "float32")
    expected = x
    for _ in range(50):
        kernel(1, x.size, (y, z))
        blas.scal(z, 0.5, out=y)
        expected = (2 * expected + 1) * np.float32(0.5)
    np.testing.assert_allclose(value(device, y), expected, rtol=1e-5, atol=1e-5)


def test_a_launch_waits_for_the_compilation_and_others_do_not(device: Device) -> None:
    x = np.arange(10, dtype="f")
    on, y = device.put(x).result(WAIT_S), array.zeros(device, (10,), "float32").result(WAIT_S)
    kernel = jit.compile(device, HEAVY, "scale<float, 7>")
    launched = kernel(1, 32, (on, y, 10))
    device.ask(Ping()).result(WAIT_S)
    assert not kernel.done
    assert not launched.done
    assert (value(device, y) == 7 * x).all()
    assert kernel.result() is kernel


def keep(x: Any) -> None:
    """Leave an array where later functions find it."""
    import builtins

    vars(builtins)["kept"] = x


def first_of_kept(_: Any) -> float:
    """Read what was left; the operand is not."""
    import builtins

    return float(vars(builtins)["kept"][0])


def test_a_function_that_waits_sees_what_it_does_not_name_as_it_was_then(device: Device) -> None:
    x, y = device.put(np.ones(4, "f")), array.zeros(device, (10,), "float32").result(WAIT_S)
    device.run(keep, x).result(WAIT_S)
    kernel = jit.compile(device, HEAVY, "scale<float, 8>")
    kernel(1, 32, (y, y, 10))
    seen = device.run(first_of_kept, y)
    blas.scal(x, 3.0, out=x)
    other = blas.scal(x[1:], 2.0)
    assert not kernel.done
    assert seen.result(WAIT_S) == 1.0
    assert value(device, x).tolist() == [3.0] * 4
    assert value(device, other).tolist() == [6.0] * 3


async def test_a_kernel_can_be_awaited(device: Device) -> None:
    kernel = jit.compile(device, STEP, "step")
    assert await kernel is kernel
    assert kernel.done
    assert kernel.error is None
    assert "ready" in repr(kernel)


def test_a_compile_error_has_the_user_s_lines(device: Device) -> None:
    source = "// one\n// two\n__global__ void f(float* x) { x[0] = nowhere; }\n"
    kernel = jit.compile(device, source, "f")
    launched = kernel(1, 1, (array.zeros(device, (1,), "float32"),))
    with pytest.raises(CompileError, match=r"f\.cu[(:]3.*nowhere") as caught:
        kernel.result(WAIT_S)
    assert caught.value.name == "f"
    assert caught.value.log in str(caught.value)
    with pytest.raises(DependencyFailed) as failed:
        launched.result(WAIT_S)
    assert isinstance(failed.value.__cause__, CompileError)
    with pytest.raises(DependencyFailed):
        kernel(1, 1, (array.zeros(device, (1,), "float32"),)).result(WAIT_S)


def test_a_compile_error_in_a_header_names_the_header(device: Device) -> None:
    source = '#include "mine.h"\n__global__ void f(float* x) {}'
    with pytest.raises(CompileError, match=r"mine\.h[(:]2"):
        jit.compile(device, source, "f", headers={"mine.h": "\nfault here;"}).result(WAIT_S)


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void f(float* x) {",
        "__global__ int f(float* x) { return 1; }",
        "__global__ void f(float* x) {}\n__global__ void f(int* x) {}",
        "template <class T> __global__ void f(T* x) {}",
        "__device__ void f(float* x) {}\n__global__ void g(float* x) { f(x); }",
        "/* __global__ */ void f(float* x) {}",
    ],
)
def test_what_is_no_single_kernel_does_not_compile(device: Device, source: str) -> None:
    with pytest.raises(CompileError, match="f does not compile"):
        jit.compile(device, source, "f").result(WAIT_S)


@pytest.mark.parametrize(
    ("head", "options"),
    [
        ('#define KERNEL extern \\\n  "C" __global__ void\nKERNEL', ()),
        ("KERNEL void", ("-DKERNEL=__global__",)),
        ("__global__ void g(); void __global__ __launch_bounds__(8)", ()),
    ],
)
def test_a_kernel_is_marked_in_any_way(device: Device, head: str, options: tuple[str, ...]) -> None:
    source = f"{head} f(float* x) {{ x[0] += 1; }}"
    x = array.zeros(device, (1,), "float32")
    jit.compile(device, source, "f", options=options)(1, 1, (x,)).result(WAIT_S)
    assert value(device, x)[0] == 1


def test_warnings_are_kept(device: Device) -> None:
    source = '#warning "mind the step"\n' + STEP
    facts = jit.compile(device, source, "step").inspect().result(WAIT_S)
    assert "mind the step" in facts.log


def test_a_kernel_tells_what_became_of_it(device: Device) -> None:
    kernel = jit.compile(device, SCALE, "scale<float, 2>")
    facts = jit.inspect_kernel(kernel).result(WAIT_S)
    assert facts.name == "scale<float, 2>"
    assert facts.parameters == ("const float*", "float*", "int")
    assert facts.source.endswith("scale.cu")
    with open(facts.source) as file:  # noqa: PTH123 - a path of another process
        assert file.read() == SCALE


@pytest.mark.parametrize(
    ("grid", "block", "said"),
    [
        (0, 1, "grid is one to three positive"),
        (1, -1, "block is one to three positive"),
        ((1, 1, 1, 1), 1, "grid is one to three"),
        ((), 1, "grid is one to three"),
        (1, 1025, "1025 threads.*at most 1024"),
        (1, (32, 32, 2), "2048 threads"),
        (1, (1, 1, 65), r"block \(1, 1, 65\) is larger than \(1024, 1024, 64\)"),
        (1.5, 1, "grid must be integers"),
        (np.ones((2, 2), int), 1, "grid must be integers"),
        (1, np.array(1.0), "block must be integers"),
        (2**31, 1, "grid is one to three"),
        ((1, 65536, 1), 1, "larger than"),
    ],
)
def test_a_launch_that_no_device_has_is_refused(
    device: Device, grid: Any, block: Any, said: str
) -> None:
    x = array.zeros(device, (1,), "float32")
    kernel = jit.compile(device, STEP, "step")
    with pytest.raises(InvalidArgument, match=said):
        kernel(grid, block, (x, x))


def test_a_float_is_no_extent_though_it_is_equal_to_one_that_was_given(device: Device) -> None:
    x = array.zeros(device, (1,), "float32")
    kernel = jit.compile(device, STEP, "step")
    for size, wrong in (((3, 1, 1), (3.0, 1, 1)), (3, 3.0)):
        kernel(size, size, (x, x)).result(WAIT_S)
        for grid, block, name in ((wrong, size, "grid"), (size, wrong, "block")):
            with pytest.raises(InvalidArgument, match=f"{name} must be integers"):
                kernel(grid, block, (x, x))  # type: ignore[arg-type]


def test_more_shared_memory_than_there_is_is_refused(device: Device) -> None:
    x = array.zeros(device, (1,), "float32")
    kernel = jit.compile(device, STEP, "step")
    with pytest.raises(InvalidArgument, match="shared_bytes is a number from 0"):
        kernel(1, 1, (x, x), shared_bytes=-1)
    with pytest.raises(InvalidArgument, match=r"1 MiB of shared memory.* than the \d+ KiB that"):
        kernel(1, 1, (x, x), shared_bytes=1 << 20).result(WAIT_S)
    kernel.result(WAIT_S)
    with pytest.raises(InvalidArgument, match=r"step: 1 MiB of shared memory.* than the \d+ KiB"):
        kernel(1, 1, (x, x), shared_bytes=1 << 20)  # what a kernel allows is known by now
    kernel(1, 1, (x, x)).result(WAIT_S)
    assert value(device, x)[0] == 1


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("nothing", (), "nothing in the source is called nothing"),
        ("step(", (), "name is a kernel's"),
        ("", (), "name is a kernel's"),
        ("step", ["-I/usr/include"], "headers="),
        ("step", ["--gpu-architecture=sm_70"], "not one of -std=c"),
        ("step", ["-std=c++11"], "not one of -std=c"),
        ("step", None, "options are texts, and headers texts by names, not None and None"),
    ],
)
def test_a_compilation_that_cannot_be_is_refused_at_the_call(
    device: Device, name: str, options: Any, said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        jit.compile(device, STEP, name, options=options)


def test_a_source_does_not_end_in_its_midst(device: Device) -> None:
    for source, headers in ((f"// a\0b\n{STEP}", {}), (STEP, {"part.h": "int i;\0"})):
        with pytest.raises(InvalidArgument, match="first NUL character"):
            jit.compile(device, source, "step", headers=headers)


@pytest.mark.parametrize("header", ["../up.h", "/etc/up.h", "", "a//b.h", ".h"])
def test_a_header_is_a_name_and_no_way_out(device: Device, header: str) -> None:
    with pytest.raises(InvalidArgument, match="a header is named as"):
        jit.compile(device, STEP, "step", headers={header: ""})


def test_headers_without_texts_are_refused(device: Device) -> None:
    names: Any = ["part.h"]
    with pytest.raises(InvalidArgument, match=r"headers texts by names, not \(\) and \['part.h'\]"):
        jit.compile(device, STEP, "step", headers=names)


def test_what_is_no_text_is_refused_at_the_call(device: Device) -> None:
    wrong: Any = 5
    for source, name, options, said in (
        (wrong, "f", (), "source is of type str, and 5 is of int"),
        (STEP, wrong, (), "name is of type str, and 5 is of int"),
        (STEP, "step", [wrong], "options and headers as str, not 5"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            jit.compile(device, source, name, options=options)


def test_a_buffer_is_no_kernel(device: Device) -> None:
    x: Any = array.zeros(device, (1,), "float32")
    with pytest.raises(
        InvalidArgument, match=r"kernel must be a Handle.CompiledKernel., not #.*Compile"
    ):
        device.ask(jit.LaunchKernel(x, (1, 1, 1), (1, 1, 1)))


def test_the_extents_of_a_launch_may_be_on_the_device(device: Device) -> None:
    source = 'extern "C" __global__ void one(int* x) { atomicAdd(x, 1); }'
    kernel = jit.compile(device, source, "one")
    count, n = device.put(np.zeros(1, np.int32)), device.put(np.array(2))
    kernel(n, (n, 1), (count,)).result()
    assert count.get() == 4
    array.copy(device.put(np.array(3)), out=n)
    kernel(n, (n, 1), (count,)).result()
    assert count.get() == 13


def test_a_source_is_compiled_however_an_editor_has_written_it(device: Device) -> None:
    lines = [
        '#include "v.h"',
        "#define KERNEL \\",
        '  extern "C" __global__',
        "KERNEL void k(float* x) { // größer als √2 — 値",
        "\tx[0] = V;\f",
        "}",
    ]
    x = array.zeros(device, 1, "float32")
    for number, (before, end, after) in enumerate(
        [("\ufeff", "\n", ""), ("", "\r\n", ""), ("\ufeff", "\r\n", "\r\n\x1a"), ("", "\r", "\r")]
    ):
        source = before + end.join(lines) + after
        header = f"{before}#define V \\{end}  {number}{after}"
        jit.compile(device, source, "k", headers={"v.h": header})(1, 1, (x,)).result()
        assert x.get() == number
        wrong = source.replace("x[0]", "y[0]")
        failing = jit.compile(device, wrong, "k", headers={"v.h": header})
        with pytest.raises(CompileError, match=r"k\.cu[(:]5\b"):
            failing.result()
