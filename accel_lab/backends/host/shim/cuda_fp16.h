// CUDA's half precision.
#pragma once

#include "accel_lab_pairs.h"

ACCEL_LAB_NARROW(__half, half_to_float, half_from)
ACCEL_LAB_PAIR(__half, __half2)
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) { return __half(x); }
inline float __half2float(__half x) { return x; }
inline __half __ushort_as_half(unsigned short bits) {
  __half result;
  result.bits = bits;
  return result;
}
inline __half __short_as_half(short bits) { return __ushort_as_half((unsigned short)bits); }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline short __half_as_short(__half x) { return (short)x.bits; }
#define ACCEL_LAB_CONVERT(name, N)                                                             \
  inline __half __##name##2half_rn(N x) { return __half(x); }                                  \
  inline N __half2##name##_rn(__half x) {                                                      \
    return accel_lab_to_integer<N>(nearbyint((double)(float)x));                               \
  }                                                                                            \
  inline N __half2##name##_rz(__half x) {                                                      \
    return accel_lab_to_integer<N>(trunc((double)(float)x));                                   \
  }                                                                                            \
  inline N __half2##name##_rd(__half x) {                                                      \
    return accel_lab_to_integer<N>(floor((double)(float)x));                                   \
  }                                                                                            \
  inline N __half2##name##_ru(__half x) {                                                      \
    return accel_lab_to_integer<N>(ceil((double)(float)x));                                    \
  }
ACCEL_LAB_CONVERT(short, short)
ACCEL_LAB_CONVERT(ushort, unsigned short)
ACCEL_LAB_CONVERT(int, int)
ACCEL_LAB_CONVERT(uint, unsigned)
ACCEL_LAB_CONVERT(ll, long long)
ACCEL_LAB_CONVERT(ull, unsigned long long)
#undef ACCEL_LAB_CONVERT

inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
