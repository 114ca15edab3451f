// CUDA's functions of numbers that the C++ library lacks. The fast ones are the exact ones here.
#pragma once

template <class A, class B>
using accel_lab_common = typename std::enable_if<std::is_arithmetic<A>::value &&
                                                     std::is_arithmetic<B>::value,
                                                 std::common_type<A, B>>::type::type;
template <class A, class B> constexpr accel_lab_common<A, B> min(A a, B b) {
  typedef accel_lab_common<A, B> T;
  return (T)b < (T)a || (T)a != (T)a ? (T)b : (T)a;
}
template <class A, class B> constexpr accel_lab_common<A, B> max(A a, B b) {
  typedef accel_lab_common<A, B> T;
  return (T)a < (T)b || (T)a != (T)a ? (T)b : (T)a;
}

inline unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long llmin(long long a, long long b) { return b < a ? b : a; }
inline long long llmax(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) {
  return b < a ? b : a;
}
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) {
  return a < b ? b : a;
}

inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
inline float sinpif(float x) { return (float)sin(3.14159265358979323846 * fmod((double)x, 2.0)); }
inline float cospif(float x) { return (float)cos(3.14159265358979323846 * fmod((double)x, 2.0)); }
inline double sinpi(double x) { return sin(3.14159265358979323846 * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(3.14159265358979323846 * fmod(x, 2.0)); }
inline float fdividef(float a, float b) { return a / b; }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
inline double rhypot(double a, double b) { return 1.0 / hypot(a, b); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / sqrtf(a * a + b * b + c * c); }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float a, float b) { return a / b; }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }

template <class To, class From> inline To accel_lab_same_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "of one size");
  To result;
  memcpy(&result, &value, sizeof result);
  return result;
}
inline int __float_as_int(float x) { return accel_lab_same_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return accel_lab_same_bits<unsigned>(x); }
inline float __int_as_float(int x) { return accel_lab_same_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return accel_lab_same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return accel_lab_same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return accel_lab_same_bits<double>(x); }
inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

// Conversions saturate, and a NaN becomes 0.
template <class To> inline To accel_lab_to_integer(double x) {
  const double low = (double)std::numeric_limits<To>::min();
  const double high = (double)std::numeric_limits<To>::max();
  if (x != x) return 0;
  if (x <= low) return std::numeric_limits<To>::min();
  if (x >= high) return std::numeric_limits<To>::max();
  return (To)x;
}
#define ACCEL_LAB_CONVERT(from, F, to, T)                                                      \
  inline T __##from##2##to##_rn(F x) { return accel_lab_to_integer<T>(nearbyint((double)x)); } \
  inline T __##from##2##to##_rz(F x) { return accel_lab_to_integer<T>(trunc((double)x)); }     \
  inline T __##from##2##to##_rd(F x) { return accel_lab_to_integer<T>(floor((double)x)); }     \
  inline T __##from##2##to##_ru(F x) { return accel_lab_to_integer<T>(ceil((double)x)); }
ACCEL_LAB_CONVERT(float, float, int, int)
ACCEL_LAB_CONVERT(float, float, uint, unsigned)
ACCEL_LAB_CONVERT(float, float, ll, long long)
ACCEL_LAB_CONVERT(float, float, ull, unsigned long long)
ACCEL_LAB_CONVERT(double, double, int, int)
ACCEL_LAB_CONVERT(double, double, uint, unsigned)
ACCEL_LAB_CONVERT(double, double, ll, long long)
ACCEL_LAB_CONVERT(double, double, ull, unsigned long long)
#undef ACCEL_LAB_CONVERT
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline double __int2double_rn(int x) { return (double)x; }
inline double __uint2double_rn(unsigned x) { return (double)x; }
inline float __double2float_rn(double x) { return (float)x; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long turned = 0;
  for (int i = 0; i < 64; ++i) turned |= (x >> i & 1) << (63 - i);
  return turned;
}
inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned __sad(int a, int b, unsigned c) {
  return c + (unsigned)(a < b ? (long long)b - a : (long long)a - b);
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned pick = selector >> (4 * i) & 15;
    unsigned byte = (unsigned)(bytes >> (8 * (pick & 7))) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += (int)(signed char)(a >> i) * (int)(signed char)(b >> i);
  return c;
}
