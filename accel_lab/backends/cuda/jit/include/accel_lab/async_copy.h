// Copies from global to shared memory that pass no register. PTX: cp.async; compute capability 8.0.
#pragma once

namespace accel_lab {

// Where something lies in shared memory, as PTX has it.
__device__ __forceinline__ unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// Begin to copy 4, 8 or 16 bytes; both addresses are multiples of that.
template <int bytes> __device__ __forceinline__ void copy_async(void* shared, const void* global) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "a copy has 4, 8 or 16 bytes");
  if constexpr (bytes == 16) {  // these pass the L1 cache by
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global))
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "n"(bytes)
                 : "memory");
  }
}

// Close a group of this thread's copies.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Wait until at most so many of this thread's groups are pending. Others see what was copied after
// a barrier.
template <int pending> __device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace accel_lab
