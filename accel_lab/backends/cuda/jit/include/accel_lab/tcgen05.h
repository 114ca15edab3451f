// Products of one thread, with sums in tensor memory: tcgen05 of PTX; compute capability 10.0.
#pragma once

#include "accel_lab/mbarrier.h"

namespace accel_lab {
namespace tcgen05 {

// Take so many columns of tensor memory, a power of 2 from 32 to 512; a whole warp calls it. Where
// they are is written to shared memory.
__device__ __forceinline__ void allocate(unsigned* shared, unsigned columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                   shared_address(shared)),
               "r"(columns)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

// Give them back; the same warp calls it.
__device__ __forceinline__ void release(unsigned tensor, unsigned columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tensor), "r"(columns)
               : "memory");
}

// Begin d = a b^T of halves or bfloats, or add it to d; `kind` is the instruction descriptor.
__device__ __forceinline__ void multiply(unsigned d, unsigned long long a, unsigned long long b,
                                         unsigned kind, bool adds) {
  asm volatile(
      "{\n .reg .pred adds;\n setp.ne.b32 adds, %4, 0;\n"
      " tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(kind), "r"(static_cast<int>(adds))
      : "memory");
}

// Have a barrier arrive when this thread's products are done.
__device__ __forceinline__ void commit(Barrier& barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(&barrier.word))
               : "memory");
}

// Order what follows behind what other threads did with tensor memory before a barrier.
__device__ __forceinline__ void fence_after_barrier() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Read eight columns of this thread's row; a whole warp calls it.
__device__ __forceinline__ void read(unsigned (&to)[8], unsigned tensor) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]), "=r"(to[4]), "=r"(to[5]), "=r"(to[6]), "=r"(to[7])
               : "r"(tensor)
               : "memory");
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

}  // namespace tcgen05
}  // namespace accel_lab
