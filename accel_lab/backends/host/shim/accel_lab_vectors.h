// CUDA's vector types, with its alignments, and what makes them.
#pragma once

#define ACCEL_LAB_VECTORS(T, name, two, four)                                                  \
  struct name##1 { T x; };                                                                     \
  struct __align__(two) name##2 { T x, y; };                                                   \
  struct name##3 { T x, y, z; };                                                               \
  struct __align__(four) name##4 { T x, y, z, w; };                                            \
  constexpr name##1 make_##name##1(T x) { return {x}; }                                        \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                        \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

ACCEL_LAB_VECTORS(signed char, char, 2, 4)
ACCEL_LAB_VECTORS(unsigned char, uchar, 2, 4)
ACCEL_LAB_VECTORS(short, short, 4, 8)
ACCEL_LAB_VECTORS(unsigned short, ushort, 4, 8)
ACCEL_LAB_VECTORS(int, int, 8, 16)
ACCEL_LAB_VECTORS(unsigned int, uint, 8, 16)
ACCEL_LAB_VECTORS(long, long, 16, 16)
ACCEL_LAB_VECTORS(unsigned long, ulong, 16, 16)
ACCEL_LAB_VECTORS(long long, longlong, 16, 16)
ACCEL_LAB_VECTORS(unsigned long long, ulonglong, 16, 16)
ACCEL_LAB_VECTORS(float, float, 8, 16)
ACCEL_LAB_VECTORS(double, double, 16, 16)
#undef ACCEL_LAB_VECTORS

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
