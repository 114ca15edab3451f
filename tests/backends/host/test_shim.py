"""CUDA C++ on the host: warps, barriers, shared memory, and what it refuses by name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, jit
from accel_lab.compute.device import Device
from accel_lab.errors import CompileError, UserCodeError
from tests.backends.kernels import run

WAIT_S = 60.0
FULL = "0xffffffffu"

SHUFFLES = f"""
__global__ void shuffle(const int* x, int* y, int by, int width) {{
  int i = threadIdx.x;
  y[i] = __shfl_sync({FULL}, x[i], by, width);
  y[32 + i] = __shfl_up_sync({FULL}, x[i], by, width);
  y[64 + i] = __shfl_down_sync({FULL}, x[i], by, width);
  y[96 + i] = __shfl_xor_sync({FULL}, x[i], by, width);
}}
"""
VOTES = f"""
__global__ void vote(const int* x, unsigned int* y, int alive) {{
  if (threadIdx.x >= alive) return;
  unsigned int* mine = y + 7 * threadIdx.x;
  int v = x[threadIdx.x], same;
  mine[0] = __ballot_sync({FULL}, v);
  mine[1] = __any_sync({FULL}, v > 1);
  mine[2] = __all_sync({FULL}, v > 0);
  mine[3] = __match_any_sync({FULL}, v);
  mine[4] = __match_all_sync({FULL}, v, &same);
  mine[5] = __reduce_add_sync({FULL}, v);
  mine[6] = __reduce_max_sync({FULL}, v);
}}
"""


@pytest.fixture(scope="module")
def shuffle(cpu: Device) -> jit.Kernel:
    return jit.compile(cpu, SHUFFLES, "shuffle").result(WAIT_S)


@pytest.fixture(scope="module")
def vote(cpu: Device) -> jit.Kernel:
    return jit.compile(cpu, VOTES, "vote").result(WAIT_S)


@settings(max_examples=40)
@given(by=st.integers(0, 31), width=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_shuffles_follow_their_definitions(
    cpu: Device, shuffle: jit.Kernel, by: int, width: int
) -> None:
    """The four rules of the CUDA C++ Programming Guide, lane by lane."""
    x = np.arange(100, 132, dtype=np.int32)
    y = array.zeros(cpu, (4, 32), "int32")
    shuffle(1, 32, (cpu.put(x), y, by, width)).result(WAIT_S)
    expected = []
    for lane in range(32):
        begin = lane // width * width
        up, down, flipped = lane - by, lane + by, lane ^ by
        expected.append(
            (
                begin + by % width,
                up if up >= begin else lane,
                down if down < begin + width else lane,
                flipped if flipped < begin + width else lane,
            )
        )
    np.testing.assert_array_equal(cpu.get(y).result(WAIT_S), x[np.array(expected).T])


@settings(max_examples=40)
@given(x=st.lists(st.integers(0, 3), min_size=32, max_size=32), alive=st.integers(1, 32))
def test_votes_are_of_the_lanes_that_have_not_ended(
    cpu: Device, vote: jit.Kernel, x: list[int], alive: int
) -> None:
    y = array.zeros(cpu, (32, 7), "uint32")
    vote(1, 32, (cpu.put(np.array(x, np.int32)), y, alive)).result(WAIT_S)
    there = x[:alive]

    def mask(chosen: list[bool]) -> int:
        return sum(1 << lane for lane, one in enumerate(chosen) if one)

    common = [
        mask([v != 0 for v in there]),
        int(any(v > 1 for v in there)),
        int(all(v > 0 for v in there)),
    ]
    got = cpu.get(y).result(WAIT_S)
    for lane, v in enumerate(there):
        equal = mask([other == v for other in there])
        all_equal = equal if len(set(there)) == 1 else 0
        assert got[lane].tolist() == [*common, equal, all_equal, sum(there), max(there)]
    assert not got[alive:].any()


def test_atomics_return_what_was_there(cpu: Device) -> None:
    source = """__global__ void f(int* x, unsigned int* u, float* g, int* old) {
      old[0] = atomicAdd(x, 5);
      old[1] = atomicSub(x, 2);
      old[2] = atomicMax(x, 100);
      old[3] = atomicMin(x, 7);
      old[4] = atomicExch(x, 12);
      old[5] = atomicCAS(x, 12, 13);
      old[6] = atomicCAS(x, 12, 99);
      old[7] = atomicAnd(x, 12) + atomicOr(x, 3) + atomicXor(x, 5);
      for (int i = 0; i < 5; ++i) atomicInc(u, 2);
      atomicDec(u + 1, 9);
      atomicAdd(g, 0.5f);
    }"""
    x, u, g = np.array([10], "i4"), np.array([0, 0], "u4"), np.array([1], "f")
    x, u, g, old = run(cpu, source, "f", x, u, g, np.zeros(8, "i4"))
    assert old.tolist() == [10, 15, 13, 100, 7, 12, 13, 13 + 12 + 15]
    assert (x.tolist(), u.tolist(), g.tolist()) == ([10], [2, 9], [1.5])


def test_a_lock_is_passed_on_between_the_threads_of_a_block(cpu: Device) -> None:
    source = """__device__ int lock = 0;
    __global__ void f(int* total) {
      __syncthreads();
      while (atomicCAS(&lock, 0, 1) != 0) {}
      int before = *total;
      __nanosleep(10);
      *total = before + 1;
      atomicExch(&lock, 0);
    }"""
    (total,) = run(cpu, source, "f", np.zeros(1, "i4"), block=100)
    assert total[0] == 100


def test_threads_that_have_ended_are_not_waited_for(cpu: Device) -> None:
    source = """__global__ void f(int* y, int alive) {
      if (threadIdx.x >= alive) return;
      int n = __syncthreads_count(threadIdx.x % 2);
      y[threadIdx.x] = n + 100 * __syncthreads_and(threadIdx.x < 3) + 1000 * __syncthreads_or(0);
    }"""
    for alive, expected in ((10, 5), (3, 101), (1, 100)):
        (y,) = run(cpu, source, "f", np.zeros(64, "i4"), alive, block=64)
        assert y.tolist() == [expected] * alive + [0] * (64 - alive)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "if (threadIdx.x < 3) __syncthreads(); else __syncwarp();",
            r"thread \(0, .* in __syncthreads\(\), and thread \(3, .* in __syncwarp\(\) for the",
        ),
        (
            "if (threadIdx.x < 16) __shfl_sync(0xffffffffu, 1, 0); else __syncthreads();",
            r"waits in __shfl_sync\(\) for the lanes 0xffffffff, and thread \(16, 0, 0\)",
        ),
    ],
)
def test_a_deadlock_is_told_and_does_not_hang(cpu: Device, body: str, said: str) -> None:
    kernel = jit.compile(cpu, f"__global__ void f(int stuck) {{ if (stuck) {{ {body} }} }}", "f")
    for _ in range(2):
        with pytest.raises(UserCodeError, match=rf"deadlock in block \(0, 0, 0\): .*{said}"):
            kernel(1, 64, (1,)).result(WAIT_S)
    kernel(2, 64, (0,)).result(WAIT_S)


def test_two_versions_of_a_template_share_nothing(cpu: Device) -> None:
    """A static of a template is one object in all libraries of a process, unless it is hidden."""
    source = """template <class T> __global__ void f(T* y) {{
      __shared__ T part[{n}];
      for (int i = 0; i < {n}; ++i) part[i] = {n};
      __syncthreads();
      y[threadIdx.x] = part[{n} - 1 - threadIdx.x];
    }}"""
    y = array.zeros(cpu, (2,), "float32")
    kernels = [jit.compile(cpu, source.format(n=n), "f<float>") for n in (2, 40_000)]
    for kernel, n in [*zip(kernels, (2, 40_000), strict=True)] * 2:
        kernel(1, 2, (y,)).result(WAIT_S)
        assert cpu.get(y).result(WAIT_S).tolist() == [n, n]


def test_shared_arrays_may_be_written_in_each_of_the_usual_ways(cpu: Device) -> None:
    source = """
    extern __shared__ __align__(16) unsigned char raw[];
    __constant__ int two = 2;
    static __constant__ int three[1] = {3};
    __device__ __noinline__ int* typed() { extern __shared__ int numbers[]; return numbers; }
    __global__ void __launch_bounds__(64, 2) f(int* y) {
      static __shared__ int one;
      extern __shared__ int rows[][2];
      if (threadIdx.x == 0) one = two + three[0];
      ((int*)raw)[threadIdx.x] = threadIdx.x;
      __syncthreads();
      y[threadIdx.x] = typed()[7 - threadIdx.x] + rows[3][1] + one;
    }"""
    y = array.zeros(cpu, (8,), "int32")
    jit.compile(cpu, source, "f")(1, 8, (y,), shared_bytes=32).result(WAIT_S)
    assert cpu.get(y).result(WAIT_S).tolist() == [19 - i for i in range(8)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#include <mma.h>", r"tensor cores \(wmma\) \(line 2\)"),
        ('__device__ void g() { asm volatile("bar.sync 0;"); }', r"inline PTX \(asm\) \(line 2\)"),
        ("__device__ void g() { cudaMalloc(0, 1); }", r"the CUDA runtime \(line 2\)"),
        ("__device__ float g(cudaTextureObject_t t);", r"textures \(line 2\)"),
        ("#include <cub/cub.cuh>", r"CUB and Thrust \(line 2\)"),
        ("__device__ int g() { return __shfl_down(1, 1); }", r"warp functions without _sync"),
    ],
)
def test_what_the_host_lacks_is_named(cpu: Device, line: str, said: str) -> None:
    source = (
        f"// cudaFree, asm( and <<< in a comment are no matter\n{line}\n__global__ void f() {{}}"
    )
    with pytest.raises(CompileError, match=rf"on the host, whose CUDA has no {said}"):
        jit.compile(cpu, source, "f").result(WAIT_S)


def test_what_the_host_lacks_may_be_left_to_the_gpu(cpu: Device) -> None:
    source = """__global__ void f(int* y) {
    #ifdef __CUDA_ARCH__
      asm volatile("bar.sync 0;");
    #endif
      *y = 1;
    }"""
    (y,) = run(cpu, source, "f", np.zeros(1, "i4"))
    assert y[0] == 1
