// What __half and __nv_bfloat16 share: 16 bits that are computed with as float and rounded after
// each operation, to nearest, ties to even.
#pragma once

namespace accel_lab_shim {

inline float half_to_float(unsigned short bits) {
  unsigned sign = (unsigned)(bits & 0x8000) << 16, magnitude = bits & 0x7fffu;
  if (magnitude < 0x400) {
    float value = (float)magnitude * 5.9604644775390625e-8f;  // 2 ** -24
    return accel_lab_same_bits<float>(accel_lab_same_bits<unsigned>(value) | sign);
  }
  unsigned exponent = magnitude < 0x7c00 ? 112u << 23 : 224u << 23;
  return accel_lab_same_bits<float>(sign | ((magnitude << 13) + exponent));
}

// The nearest half of a double; a float is one without loss.
inline unsigned short half_from(double value) {
  unsigned long long bits = accel_lab_same_bits<unsigned long long>(value);
  unsigned short sign = (unsigned short)(bits >> 48 & 0x8000);
  double size = fabs(value);
  if (size != size) return 0x7fff;
  if (size >= 65520.0) return sign | 0x7c00;
  if (size == 0) return sign;
  int exponent;
  frexp(size, &exponent);
  int unit = (exponent < -13 ? -13 : exponent) - 11;  // of the last place, 2 ** -24 at least
  unsigned count = (unsigned)nearbyint(ldexp(size, -unit));
  if (exponent < -13) return sign | (unsigned short)count;
  return sign | (unsigned short)(((exponent + 13) << 10) + count);
}

inline float bfloat_to_float(unsigned short bits) {
  return accel_lab_same_bits<float>((unsigned)bits << 16);
}

// The nearest bfloat16 of a double: what a float cannot hold of it makes the float odd, so that it
// counts where the float is halfway between two.
inline unsigned short bfloat_from(double value) {
  float near = (float)value;
  unsigned bits = accel_lab_same_bits<unsigned>(near);
  if (value != value) return 0x7fff;
  if (near != value && fabsf(near) <= FLT_MAX) {
    bits -= fabs((double)near) > fabs(value);
    bits |= 1;
  }
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace accel_lab_shim

#define ACCEL_LAB_NARROW(T, to_float, from_float)                                              \
  struct T {                                                                                   \
    unsigned short bits;                                                                       \
    T() = default;                                                                             \
    template <class N, class = typename std::enable_if<std::is_arithmetic<N>::value>::type>    \
    T(N value) : bits(accel_lab_shim::from_float((double)value)) {}                            \
    operator float() const { return accel_lab_shim::to_float(bits); }                          \
    T& operator+=(T b) { return *this = T((float)*this + (float)b); }                          \
    T& operator-=(T b) { return *this = T((float)*this - (float)b); }                          \
    T& operator*=(T b) { return *this = T((float)*this * (float)b); }                          \
    T& operator/=(T b) { return *this = T((float)*this / (float)b); }                          \
  };                                                                                           \
  inline T operator+(T a, T b) { return T((float)a + (float)b); }                              \
  inline T operator-(T a, T b) { return T((float)a - (float)b); }                              \
  inline T operator*(T a, T b) { return T((float)a * (float)b); }                              \
  inline T operator/(T a, T b) { return T((float)a / (float)b); }                              \
  inline T operator-(T a) {                                                                    \
    a.bits ^= 0x8000;                                                                          \
    return a;                                                                                  \
  }                                                                                            \
  inline T operator+(T a) { return a; }                                                        \
  inline T& operator++(T& a) { return a += T(1); }                                             \
  inline T& operator--(T& a) { return a -= T(1); }                                             \
  inline bool operator==(T a, T b) { return (float)a == (float)b; }                            \
  inline bool operator!=(T a, T b) { return (float)a != (float)b; }                            \
  inline bool operator<(T a, T b) { return (float)a < (float)b; }                              \
  inline bool operator>(T a, T b) { return (float)a > (float)b; }                              \
  inline bool operator<=(T a, T b) { return (float)a <= (float)b; }                            \
  inline bool operator>=(T a, T b) { return (float)a >= (float)b; }                            \
  inline T __hadd(T a, T b) { return a + b; }                                                  \
  inline T __hsub(T a, T b) { return a - b; }                                                  \
  inline T __hmul(T a, T b) { return a * b; }                                                  \
  inline T __hdiv(T a, T b) { return a / b; }                                                  \
  inline T __hneg(T a) { return -a; }                                                          \
  inline T __habs(T a) {                                                                       \
    a.bits &= 0x7fff;                                                                          \
    return a;                                                                                  \
  }                                                                                            \
  inline T __hmin(T a, T b) { return T(fminf(a, b)); }                                         \
  inline T __hmax(T a, T b) { return T(fmaxf(a, b)); }                                         \
  inline bool __heq(T a, T b) { return a == b; }                                               \
  inline bool __hne(T a, T b) { return a < b || a > b; }                                        \
  inline bool __hlt(T a, T b) { return a < b; }                                                \
  inline bool __hle(T a, T b) { return a <= b; }                                               \
  inline bool __hgt(T a, T b) { return a > b; }                                                \
  inline bool __hge(T a, T b) { return a >= b; }                                               \
  inline bool __hisnan(T a) { return (float)a != (float)a; }                                   \
  inline T hexp(T a) { return T(expf(a)); }                                                    \
  inline T hexp2(T a) { return T(exp2f(a)); }                                                  \
  inline T hexp10(T a) { return T(powf(10.0f, a)); }                                           \
  inline T hlog(T a) { return T(logf(a)); }                                                    \
  inline T hlog2(T a) { return T(log2f(a)); }                                                  \
  inline T hlog10(T a) { return T(log10f(a)); }                                                \
  inline T hsqrt(T a) { return T(sqrtf(a)); }                                                  \
  inline T hrsqrt(T a) { return T(rsqrtf(a)); }                                                \
  inline T hrcp(T a) { return T(1.0f / (float)a); }                                            \
  inline T hsin(T a) { return T(sinf(a)); }                                                    \
  inline T hcos(T a) { return T(cosf(a)); }                                                    \
  inline T htanh(T a) { return T(tanhf(a)); }                                                  \
  inline T hceil(T a) { return T(ceilf(a)); }                                                  \
  inline T hfloor(T a) { return T(floorf(a)); }                                                \
  inline T hrint(T a) { return T(rintf(a)); }                                                  \
  inline T htrunc(T a) { return T(truncf(a)); }                                                \
  inline int __hisinf(T a) { return isinf((float)a) ? ((float)a < 0 ? -1 : 1) : 0; }           \
  inline T __hadd_rn(T a, T b) { return a + b; }                                               \
  inline T __hsub_rn(T a, T b) { return a - b; }                                               \
  inline T __hmul_rn(T a, T b) { return a * b; }                                               \
  inline T __hadd_sat(T a, T b) { return T(__saturatef(a + b)); }                              \
  inline T __hsub_sat(T a, T b) { return T(__saturatef(a - b)); }                              \
  inline T __hmul_sat(T a, T b) { return T(__saturatef(a * b)); }                              \
  inline T __hmin_nan(T a, T b) { return __hisnan(a) || a < b ? a : b; }                       \
  inline T __hmax_nan(T a, T b) { return __hisnan(a) || a > b ? a : b; }                       \
  inline T __hfma(T a, T b, T c) { return T((double)(float)a * (float)b + (float)c); }         \
  inline T __hfma_sat(T a, T b, T c) { return T(__saturatef(__hfma(a, b, c))); }               \
  inline T __hfma_relu(T a, T b, T c) { return __hmax_nan(__hfma(a, b, c), T(0)); }            \
  inline T htanh_approx(T a) { return htanh(a); }                                              \
  inline bool __hequ(T a, T b) { return __hisnan(a) || __hisnan(b) || a == b; }                \
  inline bool __hneu(T a, T b) { return __hisnan(a) || __hisnan(b) || a != b; }                \
  inline bool __hltu(T a, T b) { return __hisnan(a) || __hisnan(b) || a < b; }                 \
  inline bool __hleu(T a, T b) { return __hisnan(a) || __hisnan(b) || a <= b; }                \
  inline bool __hgtu(T a, T b) { return __hisnan(a) || __hisnan(b) || a > b; }                 \
  inline bool __hgeu(T a, T b) { return __hisnan(a) || __hisnan(b) || a >= b; }                \
  inline T atomicAdd(T* at, T value) {                                                         \
    T old = *at;                                                                               \
    *at = old + value;                                                                         \
    accel_lab_shim::after_atomic();                                                            \
    return old;                                                                                \
  }
