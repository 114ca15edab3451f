// CUDA's half precision.
#pragma once

#include "accel_lab_narrow.h"

ACCEL_LAB_NARROW(__half, __half2, half_to_float, half_from)
typedef __half half;
typedef __half2 half2;

inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) {
  __half result;
  result.bits = accel_lab_shim::half_from(x);
  return result;
}
inline float __half2float(__half x) { return x; }
inline __half __int2half_rn(int x) { return __double2half(x); }
inline int __half2int_rn(__half x) { return __float2int_rn(x); }
inline __half __ushort_as_half(unsigned short bits) {
  __half result;
  result.bits = bits;
  return result;
}
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __hfma(__half a, __half b, __half c) {
  return __double2half((double)(float)a * (float)b + (float)c);
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
