// What __half2 and __nv_bfloat162 share: two numbers side by side, computed with one by one.
#pragma once

#include "accel_lab_narrow.h"

#define ACCEL_LAB_PAIR(T, T2)                                                                  \
  struct __align__(4) T2 {                                                                     \
    T x, y;                                                                                    \
    T2() = default;                                                                            \
    T2(const T& x, const T& y) : x(x), y(y) {}                                                 \
    T2& operator+=(const T2& b) { return *this = T2(x + b.x, y + b.y); }                       \
    T2& operator-=(const T2& b) { return *this = T2(x - b.x, y - b.y); }                       \
    T2& operator*=(const T2& b) { return *this = T2(x * b.x, y * b.y); }                       \
    T2& operator/=(const T2& b) { return *this = T2(x / b.x, y / b.y); }                       \
  };                                                                                           \
  inline T2 operator+(const T2& a, const T2& b) { return T2(a.x + b.x, a.y + b.y); }           \
  inline T2 operator-(const T2& a, const T2& b) { return T2(a.x - b.x, a.y - b.y); }           \
  inline T2 operator*(const T2& a, const T2& b) { return T2(a.x * b.x, a.y * b.y); }           \
  inline T2 operator/(const T2& a, const T2& b) { return T2(a.x / b.x, a.y / b.y); }           \
  inline T2 operator-(const T2& a) { return T2(-a.x, -a.y); }                                  \
  inline bool operator==(const T2& a, const T2& b) { return a.x == b.x && a.y == b.y; }        \
  inline bool operator!=(const T2& a, const T2& b) { return a.x != b.x && a.y != b.y; }        \
  inline bool operator<(const T2& a, const T2& b) { return a.x < b.x && a.y < b.y; }           \
  inline bool operator>(const T2& a, const T2& b) { return a.x > b.x && a.y > b.y; }           \
  inline bool operator<=(const T2& a, const T2& b) { return a.x <= b.x && a.y <= b.y; }        \
  inline bool operator>=(const T2& a, const T2& b) { return a.x >= b.x && a.y >= b.y; }        \
  inline T2 __hadd2(T2 a, T2 b) { return T2(__hadd(a.x, b.x), __hadd(a.y, b.y)); }             \
  inline T2 __hadd2_rn(T2 a, T2 b) { return __hadd2(a, b); }                                   \
  inline T2 __hadd2_sat(T2 a, T2 b) { return T2(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)); } \
  inline T2 __hsub2(T2 a, T2 b) { return T2(__hsub(a.x, b.x), __hsub(a.y, b.y)); }             \
  inline T2 __hsub2_rn(T2 a, T2 b) { return __hsub2(a, b); }                                   \
  inline T2 __hsub2_sat(T2 a, T2 b) { return T2(__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)); } \
  inline T2 __hmul2(T2 a, T2 b) { return T2(__hmul(a.x, b.x), __hmul(a.y, b.y)); }             \
  inline T2 __hmul2_rn(T2 a, T2 b) { return __hmul2(a, b); }                                   \
  inline T2 __hmul2_sat(T2 a, T2 b) { return T2(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)); } \
  inline T2 __h2div(T2 a, T2 b) { return T2(a.x / b.x, a.y / b.y); }                           \
  inline T2 __hmin2(T2 a, T2 b) { return T2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }             \
  inline T2 __hmin2_nan(T2 a, T2 b) { return T2(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)); } \
  inline T2 __hmax2(T2 a, T2 b) { return T2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }             \
  inline T2 __hmax2_nan(T2 a, T2 b) { return T2(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)); } \
  inline T2 __hneg2(T2 a) { return -a; }                                                       \
  inline T2 __habs2(T2 a) { return T2(__habs(a.x), __habs(a.y)); }                             \
  inline T2 __hisnan2(T2 a) { return T2(T((int)__hisnan(a.x)), T((int)__hisnan(a.y))); }       \
  inline T2 __hfma2(T2 a, T2 b, T2 c) {                                                        \
    return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                   \
  }                                                                                            \
  inline T2 __hfma2_sat(T2 a, T2 b, T2 c) {                                                    \
    return T2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));                           \
  }                                                                                            \
  inline T2 __hfma2_relu(T2 a, T2 b, T2 c) {                                                   \
    return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                         \
  }                                                                                            \
  inline T2 __heq2(T2 a, T2 b) { return T2(T((int)__heq(a.x, b.x)), T((int)__heq(a.y, b.y))); } \
  inline bool __hbeq2(T2 a, T2 b) { return __heq(a.x, b.x) && __heq(a.y, b.y); }               \
  inline unsigned __heq2_mask(T2 a, T2 b) {                                                    \
    return (__heq(a.x, b.x) ? 0xffffu : 0) | (__heq(a.y, b.y) ? 0xffff0000u : 0);              \
  }                                                                                            \
  inline T2 __hequ2(T2 a, T2 b) { return T2(T((int)__hequ(a.x, b.x)), T((int)__hequ(a.y, b.y))); } \
  inline bool __hbequ2(T2 a, T2 b) { return __hequ(a.x, b.x) && __hequ(a.y, b.y); }            \
  inline unsigned __hequ2_mask(T2 a, T2 b) {                                                   \
    return (__hequ(a.x, b.x) ? 0xffffu : 0) | (__hequ(a.y, b.y) ? 0xffff0000u : 0);            \
  }                                                                                            \
  inline T2 __hne2(T2 a, T2 b) { return T2(T((int)__hne(a.x, b.x)), T((int)__hne(a.y, b.y))); } \
  inline bool __hbne2(T2 a, T2 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }               \
  inline unsigned __hne2_mask(T2 a, T2 b) {                                                    \
    return (__hne(a.x, b.x) ? 0xffffu : 0) | (__hne(a.y, b.y) ? 0xffff0000u : 0);              \
  }                                                                                            \
  inline T2 __hneu2(T2 a, T2 b) { return T2(T((int)__hneu(a.x, b.x)), T((int)__hneu(a.y, b.y))); } \
  inline bool __hbneu2(T2 a, T2 b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }            \
  inline unsigned __hneu2_mask(T2 a, T2 b) {                                                   \
    return (__hneu(a.x, b.x) ? 0xffffu : 0) | (__hneu(a.y, b.y) ? 0xffff0000u : 0);            \
  }                                                                                            \
  inline T2 __hlt2(T2 a, T2 b) { return T2(T((int)__hlt(a.x, b.x)), T((int)__hlt(a.y, b.y))); } \
  inline bool __hblt2(T2 a, T2 b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); }               \
  inline unsigned __hlt2_mask(T2 a, T2 b) {                                                    \
    return (__hlt(a.x, b.x) ? 0xffffu : 0) | (__hlt(a.y, b.y) ? 0xffff0000u : 0);              \
  }                                                                                            \
  inline T2 __hltu2(T2 a, T2 b) { return T2(T((int)__hltu(a.x, b.x)), T((int)__hltu(a.y, b.y))); } \
  inline bool __hbltu2(T2 a, T2 b) { return __hltu(a.x, b.x) && __hltu(a.y, b.y); }            \
  inline unsigned __hltu2_mask(T2 a, T2 b) {                                                   \
    return (__hltu(a.x, b.x) ? 0xffffu : 0) | (__hltu(a.y, b.y) ? 0xffff0000u : 0);            \
  }                                                                                            \
  inline T2 __hle2(T2 a, T2 b) { return T2(T((int)__hle(a.x, b.x)), T((int)__hle(a.y, b.y))); } \
  inline bool __hble2(T2 a, T2 b) { return __hle(a.x, b.x) && __hle(a.y, b.y); }               \
  inline unsigned __hle2_mask(T2 a, T2 b) {                                                    \
    return (__hle(a.x, b.x) ? 0xffffu : 0) | (__hle(a.y, b.y) ? 0xffff0000u : 0);              \
  }                                                                                            \
  inline T2 __hleu2(T2 a, T2 b) { return T2(T((int)__hleu(a.x, b.x)), T((int)__hleu(a.y, b.y))); } \
  inline bool __hbleu2(T2 a, T2 b) { return __hleu(a.x, b.x) && __hleu(a.y, b.y); }            \
  inline unsigned __hleu2_mask(T2 a, T2 b) {                                                   \
    return (__hleu(a.x, b.x) ? 0xffffu : 0) | (__hleu(a.y, b.y) ? 0xffff0000u : 0);            \
  }                                                                                            \
  inline T2 __hgt2(T2 a, T2 b) { return T2(T((int)__hgt(a.x, b.x)), T((int)__hgt(a.y, b.y))); } \
  inline bool __hbgt2(T2 a, T2 b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); }               \
  inline unsigned __hgt2_mask(T2 a, T2 b) {                                                    \
    return (__hgt(a.x, b.x) ? 0xffffu : 0) | (__hgt(a.y, b.y) ? 0xffff0000u : 0);              \
  }                                                                                            \
  inline T2 __hgtu2(T2 a, T2 b) { return T2(T((int)__hgtu(a.x, b.x)), T((int)__hgtu(a.y, b.y))); } \
  inline bool __hbgtu2(T2 a, T2 b) { return __hgtu(a.x, b.x) && __hgtu(a.y, b.y); }            \
  inline unsigned __hgtu2_mask(T2 a, T2 b) {                                                   \
    return (__hgtu(a.x, b.x) ? 0xffffu : 0) | (__hgtu(a.y, b.y) ? 0xffff0000u : 0);            \
  }                                                                                            \
  inline T2 __hge2(T2 a, T2 b) { return T2(T((int)__hge(a.x, b.x)), T((int)__hge(a.y, b.y))); } \
  inline bool __hbge2(T2 a, T2 b) { return __hge(a.x, b.x) && __hge(a.y, b.y); }               \
  inline unsigned __hge2_mask(T2 a, T2 b) {                                                    \
    return (__hge(a.x, b.x) ? 0xffffu : 0) | (__hge(a.y, b.y) ? 0xffff0000u : 0);              \
  }                                                                                            \
  inline T2 __hgeu2(T2 a, T2 b) { return T2(T((int)__hgeu(a.x, b.x)), T((int)__hgeu(a.y, b.y))); } \
  inline bool __hbgeu2(T2 a, T2 b) { return __hgeu(a.x, b.x) && __hgeu(a.y, b.y); }            \
  inline unsigned __hgeu2_mask(T2 a, T2 b) {                                                   \
    return (__hgeu(a.x, b.x) ? 0xffffu : 0) | (__hgeu(a.y, b.y) ? 0xffff0000u : 0);            \
  }                                                                                            \
  inline T2 h2exp(T2 a) { return T2(hexp(a.x), hexp(a.y)); }                                   \
  inline T2 h2exp2(T2 a) { return T2(hexp2(a.x), hexp2(a.y)); }                                \
  inline T2 h2exp10(T2 a) { return T2(hexp10(a.x), hexp10(a.y)); }                             \
  inline T2 h2log(T2 a) { return T2(hlog(a.x), hlog(a.y)); }                                   \
  inline T2 h2log2(T2 a) { return T2(hlog2(a.x), hlog2(a.y)); }                                \
  inline T2 h2log10(T2 a) { return T2(hlog10(a.x), hlog10(a.y)); }                             \
  inline T2 h2sqrt(T2 a) { return T2(hsqrt(a.x), hsqrt(a.y)); }                                \
  inline T2 h2rsqrt(T2 a) { return T2(hrsqrt(a.x), hrsqrt(a.y)); }                             \
  inline T2 h2rcp(T2 a) { return T2(hrcp(a.x), hrcp(a.y)); }                                   \
  inline T2 h2sin(T2 a) { return T2(hsin(a.x), hsin(a.y)); }                                   \
  inline T2 h2cos(T2 a) { return T2(hcos(a.x), hcos(a.y)); }                                   \
  inline T2 h2tanh(T2 a) { return T2(htanh(a.x), htanh(a.y)); }                                \
  inline T2 h2ceil(T2 a) { return T2(hceil(a.x), hceil(a.y)); }                                \
  inline T2 h2floor(T2 a) { return T2(hfloor(a.x), hfloor(a.y)); }                             \
  inline T2 h2rint(T2 a) { return T2(hrint(a.x), hrint(a.y)); }                                \
  inline T2 h2trunc(T2 a) { return T2(htrunc(a.x), htrunc(a.y)); }                             \
  inline T2 h2tanh_approx(T2 a) { return h2tanh(a); }                                          \
  inline float __low2float(T2 a) { return a.x; }                                               \
  inline float __high2float(T2 a) { return a.y; }                                              \
  inline T2 __lowhigh2highlow(T2 a) { return T2(a.y, a.x); }                                   \
  inline T2 atomicAdd(T2* at, T2 value) {                                                      \
    T2 old = *at;                                                                              \
    *at = old + value;                                                                         \
    accel_lab_shim::after_atomic();                                                            \
    return old;                                                                                \
  }
