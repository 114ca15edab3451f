"""Numbers in CUDA C++ on the host: bits, conversions, halves and vectors, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, jit
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from tests.backends.kernels import run

WAIT_S = 60.0

BITS = """
__global__ void bits(unsigned int a, unsigned int b, int s, unsigned int* y) {
  y[0] = __popc(a);
  y[1] = __clz(a);
  y[2] = __ffs(a);
  y[3] = __brev(a);
  y[4] = __umulhi(a, b);
  y[5] = __mulhi((int)a, (int)b);
  y[6] = __funnelshift_l(a, b, s);
  y[7] = __funnelshift_r(a, b, s);
  y[8] = __byte_perm(a, b, s & 0x7777);
}
"""


@pytest.fixture(scope="module")
def bits(cpu: Device) -> jit.Kernel:
    return jit.compile(cpu, BITS, "bits").result(WAIT_S)


@settings(max_examples=60)
@given(a=st.integers(0, 2**32 - 1), b=st.integers(0, 2**32 - 1), s=st.integers(0, 2**15 - 1))
def test_bit_functions_agree_with_python(
    cpu: Device, bits: jit.Kernel, a: int, b: int, s: int
) -> None:
    y = array.zeros(cpu, (9,), "uint32")
    bits(1, 1, (a, b, s, y)).result(WAIT_S)
    signed = [n - 2**32 if n >= 2**31 else n for n in (a, b)]
    both, word = b << 32 | a, 2**32 - 1
    eight = [both >> (8 * i) & 255 for i in range(8)]
    assert cpu.get(y).result(WAIT_S).tolist() == [
        a.bit_count(),
        32 - a.bit_length(),
        (a & -a).bit_length(),
        int(f"{a:032b}"[::-1], 2),
        a * b >> 32,
        (signed[0] * signed[1] >> 32) & word,
        (both << (s & 31) >> 32) & word,
        (both >> (s & 31)) & word,
        sum(eight[s >> (4 * i) & 7] << (8 * i) for i in range(4)),
    ]


def test_conversions_saturate(cpu: Device) -> None:
    source = """__global__ void to(const float* x, int* y, unsigned int* z, int n) {
      for (int i = 0; i < n; ++i) y[i] = __float2int_rn(x[i]), z[i] = __float2uint_rz(x[i]);
    }"""
    x = np.array([0.5, 1.5, -2.5, 3e9, -3e9, 5e9, np.nan, np.inf, -1.5], "f")
    _, y, z = run(cpu, source, "to", x, np.zeros(9, "i4"), np.zeros(9, "u4"), 9)
    big = 2**31 - 1
    assert y.tolist() == [0, 2, -2, big, -big - 1, big, 0, big, -2]
    assert z.tolist() == [0, 1, 0, 3 * 10**9, 0, 2**32 - 1, 0, 2**32 - 1, 0]


def test_halves_are_numpy_s(cpu: Device) -> None:
    """All 65536 patterns to float, and floats of every exponent to half, ties among them."""
    source = """#include <cuda_fp16.h>
    __global__ void widen(const __half* x, float* y) {
      for (int i = 0; i < 65536; ++i) y[i] = x[i];
    }
    __global__ void narrow(const float* x, half* y, int n) {
      for (int i = 0; i < n; ++i) y[i] = __float2half(x[i]);
    }"""
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    _, wide = run(cpu, source, "widen", every, np.zeros(65536, "f"))
    np.testing.assert_array_equal(wide, every.astype("f"))
    with np.errstate(over="ignore", invalid="ignore"):
        between = np.nextafter(wide, np.float32(np.inf))
        ties = (wide[:-1] + wide[1:]) / 2
        floats = np.concatenate([wide, between, ties, np.array([65519, 65520, 1e-8, 3e-8], "f")])
        expected = floats.astype(np.float16)
    _, got = run(cpu, source, "narrow", floats, np.zeros(floats.size, np.float16), floats.size)
    np.testing.assert_array_equal(got, expected)


def test_bfloat16_is_that_of_ml_dtypes(cpu: Device) -> None:
    source = """#include <cuda_bf16.h>
    __global__ void sum(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* z, int n) {
      for (int i = 0; i < n; ++i) z[i] = x[i] + y[i];
    }"""
    dtype = numpy_dtype("bfloat16")
    x, y = np.random.default_rng(0).standard_normal((2, 5000)).astype(dtype)
    _, _, z = run(cpu, source, "sum", x, y, np.zeros_like(x), x.size)
    np.testing.assert_array_equal(z.astype("f"), (x + y).astype("f"))


def test_vector_types_have_cuda_s_sizes_and_alignments(cpu: Device) -> None:
    kinds = ["char2", "uchar4", "short3", "ushort4", "int2", "int3", "uint4", "longlong2"]
    kinds += ["float1", "float2", "float3", "float4", "double2", "double3", "dim3"]
    table = [(2, 2), (4, 4), (6, 2), (8, 8), (8, 8), (12, 4), (16, 16), (16, 16)]
    table += [(4, 4), (8, 8), (12, 4), (16, 16), (16, 16), (24, 8), (12, 4)]
    body = "".join(f"*y++ = sizeof({k}); *y++ = alignof({k});" for k in kinds)
    (y,) = run(cpu, f"__global__ void f(int* y) {{ {body} }}", "f", np.zeros(30, "i4"))
    assert y.reshape(-1, 2).tolist() == list(map(list, table))
