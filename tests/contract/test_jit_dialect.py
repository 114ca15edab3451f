"""The CUDA C++ that people have: spellings, pairs of halves, intrinsics, atomics."""

import ml_dtypes
import numpy as np
import pytest

from accel_lab import array, jit
from accel_lab.compute.device import Device
from accel_lab.errors import CompileError
from tests.contract.samples import value

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0
SHARED = """
#include "more.h"
__device__ float first(float*);
template <class T> __global__ void __launch_bounds__(64) spelled(T* x) {
  extern __shared__ __align__(16) unsigned char a[];
  alignas(16) extern __shared__ T b[];
  extern T __shared__ c[];
  __shared__ alignas(16) T own[4];
  volatile __shared__ static T still[4];
  reinterpret_cast<T*>(a)[threadIdx.x] = x[threadIdx.x];
  own[threadIdx.x % 4] = still[threadIdx.x % 4] = 1;
  __syncthreads();
  x[threadIdx.x] = b[blockDim.x - 1 - threadIdx.x] + c[0] + own[0] + still[3] + of_header();
}
__device__ float first(float* x) { return x[0]; }
"""
MORE = "extern __shared__ float h[];\n__device__ inline float of_header() { return h[1]; }\n"
PAIRS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void pairs(const __half2* x, const __nv_bfloat162* y, __half2* a, __nv_bfloat162* b) {
  int i = threadIdx.x;
  a[8 * i] = half2(__low2half(x[i]), x[i].x);
  a[8 * i + 1] = __hfma2(x[i], x[i], __float2half2_rn(0.5f));
  a[8 * i + 2] = __hmax2(x[i], __hneg2(x[i]));
  a[8 * i + 3] = __lowhigh2highlow(x[i]) - __half2half2(__float2half(1.0f));
  a[8 * i + 4] = __hge2(x[i], __floats2half2_rn(0.0f, 1.0f));
  a[8 * i + 5] = __h2div(x[i], __float22half2_rn(make_float2(2.0f, 4.0f)));
  a[8 * i + 6] = __shfl_xor_sync(0xffffffffu, x[i], 1);
  a[8 * i + 7] = __habs2(x[i]);
  b[4 * i] = __nv_bfloat162(y[i].y, y[i].x);
  b[4 * i + 1] = __hmul2(y[i], __float2bfloat162_rn(3.0f));
  b[4 * i + 2] = __hmin2(y[i], __bfloat162bfloat162(__float2bfloat16(0.0f)));
  b[4 * i + 3] = __floats2bfloat162_rn(__low2float(y[i]) + 1.0f, __bfloat1622float2(y[i]).y);
}
"""
INTRINSICS = """
__global__ void floats(const float* x, float* y) {
  float v = __ldg(x + threadIdx.x), s, c;
  sincospif(v, &s, &c);
  float all[9] = {__expf(v),        __logf(v), __fdividef(v, 3.0f), rsqrtf(v), __powf(v, 1.5f),
                  __saturatef(v - 1), s,         fmaf(v, v, 1.0f),    rhypotf(v, 1.0f)};
  for (int i = 0; i < 9; ++i) __stcs(y + 9 * threadIdx.x + i, all[i]);
}
__global__ void vectors(const float4* x, float4* y, int4* z) {
  float4 v = __ldcs(x + threadIdx.x);
  y[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
  z[threadIdx.x] = *reinterpret_cast<int4*>(&v);
}
__global__ void atomics(int* x, float* f, unsigned long long* u) {
  atomicAdd_block(x, 1);
  atomicAdd_system(x, 2);
  atomicMax(x + 1, (int)threadIdx.x);
  atomicMin_block(x + 2, -(int)threadIdx.x);
  atomicOr(x + 3, 1 << threadIdx.x);
  atomicInc((unsigned*)x + 4, 6);
  atomicCAS_system(x + 5, 0, 9);
  atomicAdd(f, 0.5f);
  atomicXor(u, 1ull << threadIdx.x);
  atomicMax(u + 1, (unsigned long long)umax(threadIdx.x, 3u));
}
"""


def test_dynamic_shared_memory_is_spelled_in_any_way(device: Device) -> None:
    x = np.arange(16, dtype="f")
    on = device.put(x)
    kernel = jit.compile(device, SHARED, "spelled<float>", headers={"more.h": MORE})
    kernel(1, 16, (on,), shared_bytes=64).result(WAIT_S)
    np.testing.assert_array_equal(value(device, on), x[::-1] + x[0] + 1 + 1 + x[1])


def test_pairs_are_computed_with_one_by_one(device: Device) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-4, 4, (32, 2)).astype(np.float16)
    y = random.uniform(-4, 4, (32, 2)).astype(ml_dtypes.bfloat16)
    a, b = array.zeros(device, (32, 8, 2), "float16"), array.zeros(device, (32, 4, 2), "bfloat16")
    on = device.put(x), device.put(y)
    jit.compile(device, PAIRS, "pairs")(1, 32, (*on, a, b)).result(WAIT_S)
    wide = x.astype("d")
    halves = [
        x[:, [0, 0]],
        wide * wide + 0.5,
        np.maximum(x, -x),
        x[:, ::-1] - np.float16(1),
        x >= np.array([0, 1], np.float16),
        x / np.array([2, 4], np.float16),
        x[np.arange(32) ^ 1],
        np.abs(x),
    ]
    np.testing.assert_array_equal(value(device, a), np.stack(halves, 1).astype(np.float16))
    floats = y.astype("f")
    others = [y[:, ::-1], floats * 3, np.minimum(floats, 0), floats + np.array([1, 0], "f")]
    made = np.stack([one.astype(ml_dtypes.bfloat16) for one in others], 1)
    np.testing.assert_array_equal(value(device, b).astype("f"), made.astype("f"))


def test_fast_functions_are_near_the_exact_ones(device: Device) -> None:
    x = np.random.default_rng(1).uniform(0.1, 4, 64).astype("f")
    y = array.zeros(device, (64, 9), "float32")
    jit.compile(device, INTRINSICS, "floats")(1, 64, (device.put(x), y)).result(WAIT_S)
    v = x.astype("d")
    exact = np.stack(
        [
            np.exp(v),
            np.log(v),
            v / 3,
            1 / np.sqrt(v),
            v**1.5,
            np.clip(v - 1, 0, 1),
            np.sin(np.pi * v),
            v * v + 1,
            1 / np.hypot(v, 1),
        ],
        1,
    )
    np.testing.assert_allclose(value(device, y), exact, rtol=2e-5, atol=2e-6)


def test_vectors_are_sixteen_bytes_at_once(device: Device) -> None:
    x = np.random.default_rng(2).standard_normal((32, 4)).astype("f")
    y, z = array.zeros(device, (32, 4), "float32"), array.zeros(device, (32, 4), "int32")
    jit.compile(device, INTRINSICS, "vectors")(1, 32, (device.put(x), y, z)).result(WAIT_S)
    np.testing.assert_array_equal(value(device, y), x[:, ::-1])
    np.testing.assert_array_equal(value(device, z), x.view(np.int32))


def test_atomics_have_every_scope(device: Device) -> None:
    x = array.zeros(device, (6,), "int32")
    f, u = array.zeros(device, (1,), "float32"), array.zeros(device, (2,), "uint64")
    jit.compile(device, INTRINSICS, "atomics")(1, 20, (x, f, u)).result(WAIT_S)
    assert value(device, x).tolist() == [60, 19, -19, (1 << 20) - 1, 20 % 7, 9]
    assert value(device, f)[0] == 10
    assert value(device, u).tolist() == [(1 << 20) - 1, 19]


def test_what_has_no_annotation_is_the_device_s(device: Device) -> None:
    source = """
    float twice(float x);
    const int STEP = 3;
    __global__ void f(float* x) { x[0] = twice(x[0]) + STEP; }
    float twice(float x) { return 2 * x; }
    """
    x = device.put(np.full(1, 4, "f"))
    jit.compile(device, source, "f")(1, 1, (x,)).result(WAIT_S)
    assert value(device, x)[0] == 11


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("#include <mma.h>\n__global__ void f(float* x) {}", r"tensor cores \(wmma\) \(line 1\)"),
        (
            '__global__ void f(int* x) {\n  asm volatile("mov.u32 %0, %laneid;" : "=r"(x[0]));\n}',
            r"inline PTX \(asm\) \(line 2\)",
        ),
    ],
)
def test_what_only_a_card_has_is_refused_by_name(device: Device, source: str, said: str) -> None:
    if not device.name.startswith("cpu"):
        pytest.skip("a card has it")
    with pytest.raises(CompileError, match=said):
        jit.compile(device, source, "f").result(WAIT_S)
