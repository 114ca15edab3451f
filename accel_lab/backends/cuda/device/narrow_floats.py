"""Narrow floats in kernels: float16, bfloat16, float8_e4m3fn and float8_e5m2 as their bits.

The C++ is portable, so that a test can run it without a GPU and compare all of it with
ml_dtypes. Rounding is to nearest, ties to even. As ml_dtypes does, every source is first made a
float32, except float64 on its way to float16, which NumPy rounds once.
"""

from typing import NamedTuple

SOURCE = r"""
#ifndef __CUDACC__
#define __device__ static inline
#endif

namespace narrow {

__device__ unsigned bits_of(float value) {
  union { float value; unsigned bits; } both;
  both.value = value;
  return both.bits;
}

__device__ float float_of(unsigned bits) {
  union { float value; unsigned bits; } both;
  both.bits = bits;
  return both.value;
}

// The low `shift` bits are dropped; 0 < shift < 32.
__device__ unsigned drop(unsigned bits, int shift) {
  unsigned half = 1u << (shift - 1);
  return (bits + (half - 1) + ((bits >> shift) & 1)) >> shift;
}

// Formats with E exponent and M mantissa bits. FINITE ones have no infinity and one NaN, the
// largest pattern, which also stands for what is too large.
template <int E, int M, bool FINITE>
__device__ unsigned encode(float value) {
  const int bias = (1 << (E - 1)) - 1;
  const unsigned infinity = ((1u << E) - 1) << M;
  const unsigned nan = FINITE ? infinity | ((1u << M) - 1) : infinity | (1u << (M - 1));
  const unsigned overflow = FINITE ? nan : infinity;
  unsigned bits = bits_of(value);
  unsigned sign = bits >> 31 << (E + M);
  unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | nan;
  if (magnitude == 0x7f800000u) return sign | overflow;
  int exponent = (int)(magnitude >> 23) - 127 + bias;
  unsigned rounded;
  if (E == 8 || exponent > 0) {
    rounded = drop(magnitude - ((unsigned)(127 - bias) << 23), 23 - M);
    return sign | (rounded < overflow ? rounded : overflow);
  }
  int shift = 23 - M + 1 - exponent;
  if (shift > 25) return sign;
  return sign | drop((magnitude & 0x7fffffu) | 0x800000u, shift);
}

template <int E, int M, bool FINITE>
__device__ float decode(unsigned bits) {
  const int bias = (1 << (E - 1)) - 1;
  unsigned sign = bits >> (E + M) << 31;
  unsigned magnitude = bits & ((1u << (E + M)) - 1);
  if (E == 8) return float_of(sign | magnitude << (23 - M));
  if (FINITE && magnitude == (1u << (E + M)) - 1) return float_of(sign | 0x7fc00000u);
  if (!FINITE && magnitude >> M == (1u << E) - 1)
    return float_of(sign | 0x7f800000u | magnitude << (23 - M));
  float unit = float_of((unsigned)(128 - bias - M) << 23);
  if (magnitude >> M == 0) return float_of(sign | bits_of(magnitude * unit));
  return float_of(sign | ((magnitude << (23 - M)) + ((unsigned)(127 - bias) << 23)));
}

// CuPy compiles with -ftz=true, which would flush subnormals in these conversions.
__device__ float nearest(double value) {
#ifdef __CUDACC__
  float result;
  asm("cvt.rn.f32.f64 %0, %1;" : "=f"(result) : "d"(value));
  return result;
#else
  return (float)value;
#endif
}

__device__ float nearest(float value) { return value; }

template <class T>
__device__ float nearest(T value) { return (float)value; }

__device__ double widened(float value) {
#ifdef __CUDACC__
  double result;
  asm("cvt.f64.f32 %0, %1;" : "=d"(result) : "f"(value));
  return result;
#else
  return (double)value;
#endif
}

// float32 with the last bit set if it had to be cut off: rounding that again rounds only once.
__device__ float cut(double value) {
  float near = nearest(value);
  double back = widened(near);
  if (back == value || value != value) return near;
  unsigned bits = bits_of(near);
  bool away = value < 0 ? back < value : back > value;
  return float_of((away ? bits - 1 : bits) | 1u);
}

}  // namespace narrow
"""


class Format(NamedTuple):
    """A narrow float: its bits are `storage`, its template arguments `<E, M, FINITE>`."""

    storage: str
    arguments: str

    def decode(self, bits: str) -> str:
        """Return the C++ expression of the float32 that these bits are."""
        return f"narrow::decode<{self.arguments}>({bits})"

    def encode(self, value: str) -> str:
        """Return the C++ expression of the bits nearest to a float32."""
        return f"narrow::encode<{self.arguments}>({value})"


FORMATS = {
    "bfloat16": Format("uint16", "8, 7, false"),
    "float8_e4m3fn": Format("uint8", "4, 3, true"),
    "float8_e5m2": Format("uint8", "5, 2, false"),
}
"""The dtypes whose arrays hold bits."""

HALF = Format("uint16", "5, 10, false")
"""float16, which CuPy has itself; from float64 it rounds twice."""
