// CUDA C++ for one core: what stands in front of a kernel's source on the host.
//
// Blocks run one after another. The threads of a block are fibers, so that a barrier is a barrier;
// a source that never synchronises is run as a plain loop over its threads. What is not defined
// here does not exist on the host, and a kernel that uses it does not compile.
#pragma once

#include <assert.h>
#include <float.h>
#include <link.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <limits>
#include <type_traits>
#include <utility>

#define ACCEL_LAB_HOST 1
#define __CUDACC__ 1

#define __global__
#define __device__
#define __host__
#define __constant__ __attribute__((visibility("hidden")))  // what is static is taken for 0
#ifdef ACCEL_LAB_GRID
#define __shared__ static thread_local
#else
#define __shared__ static
#endif
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif

#include "accel_lab_vectors.h"

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

#include "accel_lab_fibers.h"
#include "accel_lab_warps.h"
#include "accel_lab_atomics.h"
#include "accel_lab_math.h"

template <class T> inline T __ldg(const T* at) { return *at; }
template <class T> inline T __ldca(const T* at) { return *at; }
template <class T> inline T __ldcg(const T* at) { return *at; }
template <class T> inline T __ldcs(const T* at) { return *at; }
template <class T> inline T __ldcv(const T* at) { return *at; }
template <class T> inline T __ldlu(const T* at) { return *at; }
template <class T, class V> inline void __stwb(T* at, V value) { *at = value; }
template <class T, class V> inline void __stcg(T* at, V value) { *at = value; }
template <class T, class V> inline void __stcs(T* at, V value) { *at = value; }
template <class T, class V> inline void __stwt(T* at, V value) { *at = value; }

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { accel_lab_shim::give_way(); }
[[noreturn]] inline void __trap() { abort(); }

inline void __brkpt() { abort(); }

inline long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}
