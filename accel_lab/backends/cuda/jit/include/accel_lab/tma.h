// Tiles that the card's copy engine fetches and stores by itself: give a kernel
// jit.tensor_map(x, box=…) for a parameter `const __grid_constant__ accel_lab::TensorMap`.
// PTX: cp.async.bulk; compute capability 9.0. One thread calls these.
#pragma once

#include "accel_lab/mbarrier.h"

namespace accel_lab {

// CUDA's CUtensorMap, without its header.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

// Fetch the description of tiles ahead of its first use.
__device__ __forceinline__ void prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Begin to fetch a tile into shared memory at a multiple of 128 bytes (of 1024 with swizzle=128).
// The barrier is to expect its bytes. Coordinates are elements, the last axis first, and may lie
// beyond the edges.
__device__ __forceinline__ void load_tile(void* shared, const TensorMap& map, Barrier& barrier, int x) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier.word)), "r"(x)
      : "memory");
}
__device__ __forceinline__ void load_tile(void* shared, const TensorMap& map, Barrier& barrier, int x,
                                          int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier.word)), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void load_tile(void* shared, const TensorMap& map, Barrier& barrier, int x,
                                          int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier.word)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// Begin to fetch plain bytes, a multiple of 16 from a multiple of 16; needs no description.
__device__ __forceinline__ void load_bytes(void* shared, const void* global, unsigned bytes,
                                           Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(shared)),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(&barrier.word))
      : "memory");
}

// Make what this thread wrote to shared memory known to the copy engine; then synchronise, and have
// one thread store.
__device__ __forceinline__ void publish_to_stores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Begin to store a tile; what lies beyond the edges is left out.
__device__ __forceinline__ void store_tile(const TensorMap& map, const void* shared, int x) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(x)
               : "memory");
}
__device__ __forceinline__ void store_tile(const TensorMap& map, const void* shared, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
      "r"(shared_address(shared)), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void store_tile(const TensorMap& map, const void* shared, int x, int y,
                                           int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
      "r"(shared_address(shared)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// Close a group of this thread's stores.
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Wait until at most so many of this thread's groups are pending: what they wrote is there.
template <int pending> __device__ __forceinline__ void wait_stores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace accel_lab
