// Atomics: there is one core, so they are plain. The types are those that CUDA has.
#pragma once

#define ACCEL_LAB_ATOMIC(name, T, expression)                                                  \
  inline T name(T* at, T value) {                                                              \
    T old = *at;                                                                               \
    *at = (expression);                                                                        \
    accel_lab_shim::after_atomic();                                                            \
    return old;                                                                                \
  }                                                                                            \
  inline T name##_block(T* at, T value) { return name(at, value); }                            \
  inline T name##_system(T* at, T value) { return name(at, value); }

ACCEL_LAB_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
ACCEL_LAB_ATOMIC(atomicAdd, unsigned int, old + value)
ACCEL_LAB_ATOMIC(atomicAdd, unsigned long long, old + value)
ACCEL_LAB_ATOMIC(atomicAdd, float, old + value)
ACCEL_LAB_ATOMIC(atomicAdd, double, old + value)
ACCEL_LAB_ATOMIC(atomicAdd, float2, (float2{old.x + value.x, old.y + value.y}))
ACCEL_LAB_ATOMIC(atomicAdd, float4, (float4{old.x + value.x, old.y + value.y, old.z + value.z,
                                            old.w + value.w}))
ACCEL_LAB_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
ACCEL_LAB_ATOMIC(atomicSub, unsigned int, old - value)
ACCEL_LAB_ATOMIC(atomicExch, int, value)
ACCEL_LAB_ATOMIC(atomicExch, unsigned int, value)
ACCEL_LAB_ATOMIC(atomicExch, unsigned long long, value)
ACCEL_LAB_ATOMIC(atomicExch, float, value)
ACCEL_LAB_ATOMIC(atomicMin, int, value < old ? value : old)
ACCEL_LAB_ATOMIC(atomicMin, unsigned int, value < old ? value : old)
ACCEL_LAB_ATOMIC(atomicMin, long long, value < old ? value : old)
ACCEL_LAB_ATOMIC(atomicMin, unsigned long long, value < old ? value : old)
ACCEL_LAB_ATOMIC(atomicMax, int, value > old ? value : old)
ACCEL_LAB_ATOMIC(atomicMax, unsigned int, value > old ? value : old)
ACCEL_LAB_ATOMIC(atomicMax, long long, value > old ? value : old)
ACCEL_LAB_ATOMIC(atomicMax, unsigned long long, value > old ? value : old)
ACCEL_LAB_ATOMIC(atomicInc, unsigned int, old >= value ? 0 : old + 1)
ACCEL_LAB_ATOMIC(atomicDec, unsigned int, old == 0 || old > value ? value : old - 1)
ACCEL_LAB_ATOMIC(atomicAnd, int, old & value)
ACCEL_LAB_ATOMIC(atomicAnd, unsigned int, old & value)
ACCEL_LAB_ATOMIC(atomicAnd, unsigned long long, old & value)
ACCEL_LAB_ATOMIC(atomicOr, int, old | value)
ACCEL_LAB_ATOMIC(atomicOr, unsigned int, old | value)
ACCEL_LAB_ATOMIC(atomicOr, unsigned long long, old | value)
ACCEL_LAB_ATOMIC(atomicXor, int, old ^ value)
ACCEL_LAB_ATOMIC(atomicXor, unsigned int, old ^ value)
ACCEL_LAB_ATOMIC(atomicXor, unsigned long long, old ^ value)

#define ACCEL_LAB_CAS(T)                                                                       \
  inline T atomicCAS(T* at, T expected, T value) {                                             \
    T old = *at;                                                                               \
    if (old == expected) *at = value;                                                          \
    accel_lab_shim::after_atomic();                                                            \
    return old;                                                                                \
  }                                                                                            \
  inline T atomicCAS_block(T* at, T expected, T value) {                                       \
    return atomicCAS(at, expected, value);                                                     \
  }                                                                                            \
  inline T atomicCAS_system(T* at, T expected, T value) {                                      \
    return atomicCAS(at, expected, value);                                                     \
  }
ACCEL_LAB_CAS(int)
ACCEL_LAB_CAS(unsigned int)
ACCEL_LAB_CAS(unsigned long long)
ACCEL_LAB_CAS(unsigned short)
#undef ACCEL_LAB_CAS
