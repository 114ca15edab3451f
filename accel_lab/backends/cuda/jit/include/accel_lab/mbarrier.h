// Barriers in shared memory that count threads and the bytes of copies. PTX: mbarrier.
#pragma once

#include "accel_lab/async_copy.h"

namespace accel_lab {

// A barrier; declare it __shared__. One thread calls init, then all of the block synchronise.
struct Barrier {
  unsigned long long word;

  // Expect so many arrivals in each phase; make that known to the copy engine, too.
  __device__ __forceinline__ void init(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&word)), "r"(arrivals)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }

  __device__ __forceinline__ void arrive() {
    asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared::cta.b64 state, [%0];\n}" ::"r"(
                     shared_address(&word))
                 : "memory");
  }

  // Arrive, and have the phase wait for so many bytes of copies more.
  __device__ __forceinline__ void arrive_and_expect(unsigned bytes) {
    asm volatile(
        "{\n .reg .b64 state;\n mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(
            shared_address(&word)),
        "r"(bytes)
        : "memory");
  }

  // Whether the phase of this parity has ended; the first phase has parity 0.
  __device__ __forceinline__ bool has_ended(unsigned parity) {
    unsigned ended;
    asm volatile(
        "{\n .reg .pred done;\n mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        " selp.u32 %0, 1, 0, done;\n}"
        : "=r"(ended)
        : "r"(shared_address(&word)), "r"(parity)
        : "memory");
    return ended != 0;
  }

  // Wait until the phase of this parity has ended.
  __device__ __forceinline__ void wait(unsigned parity) {
    while (!has_ended(parity)) {
    }
  }
};

}  // namespace accel_lab
