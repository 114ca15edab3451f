// CUDA's complex numbers in C.
#pragma once

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define ACCEL_LAB_COMPLEX(C, R, end)                                                           \
  inline R cuCreal##end(C a) { return a.x; }                                                   \
  inline R cuCimag##end(C a) { return a.y; }                                                   \
  inline C cuConj##end(C a) { return {a.x, -a.y}; }                                            \
  inline C cuCadd##end(C a, C b) { return {a.x + b.x, a.y + b.y}; }                            \
  inline C cuCsub##end(C a, C b) { return {a.x - b.x, a.y - b.y}; }                            \
  inline C cuCmul##end(C a, C b) {                                                             \
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                                     \
  }                                                                                            \
  inline C cuCdiv##end(C a, C b) {                                                             \
    R n = b.x * b.x + b.y * b.y;                                                               \
    return {(a.x * b.x + a.y * b.y) / n, (a.y * b.x - a.x * b.y) / n};                         \
  }
ACCEL_LAB_COMPLEX(cuFloatComplex, float, f)
ACCEL_LAB_COMPLEX(cuDoubleComplex, double, )
#undef ACCEL_LAB_COMPLEX
inline cuFloatComplex make_cuFloatComplex(float x, float y) { return {x, y}; }
inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { return {x, y}; }
inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
inline float cuCabsf(cuFloatComplex a) { return hypotf(a.x, a.y); }
inline double cuCabs(cuDoubleComplex a) { return hypot(a.x, a.y); }
