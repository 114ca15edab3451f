// Products of a warp group, 128 threads: wgmma of PTX; cards of compute capability 9.0 alone.
#pragma once

#include "accel_lab/async_copy.h"

namespace accel_lab {
namespace wgmma {

// Describe a matrix in shared memory whose rows have 64 halves: k beside k, as a tile of box
// (rows, 64) lies that was fetched with swizzle=128. It begins at a multiple of 1024 bytes; the k
// from 16 i on are described by what begins 32 i bytes behind that.
__device__ __forceinline__ unsigned long long matrix(const void* shared) {
  unsigned long long address = (shared_address(shared) & 0x3ffff) >> 4;
  unsigned long long next_row = 16 >> 4, next_rows = 1024 >> 4, swizzle_of_128 = 1;
  return address | next_row << 16 | next_rows << 32 | swizzle_of_128 << 62;
}

// Order what is described behind what this thread wrote to shared memory and to its sums.
__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Close a group of products.
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Wait until at most so many groups are pending; before that nobody touches their sums.
template <int pending> __device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Begin d = a b^T, or add it to d: a and b are 64 x 16, d is 64 x 64, float32. Of thread t d[4 j],
// d[4 j + 1] are row 16 (t / 32) + t % 32 / 4, columns 8 j + 2 (t % 4) and the next one; d[4 j + 2],
// d[4 j + 3] are those eight rows below.
__device__ __forceinline__ void multiply_halves(float (&d)[32], unsigned long long a,
                                                     unsigned long long b, bool adds) {
  asm volatile(
      "{\n .reg .pred adds;\n setp.ne.b32 adds, %34, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {\n"
      " %0, %1, %2, %3, %4, %5, %6, %7,\n"
      " %8, %9, %10, %11, %12, %13, %14, %15,\n"
      " %16, %17, %18, %19, %20, %21, %22, %23,\n"
      " %24, %25, %26, %27, %28, %29, %30, %31\n"
      " }, %32, %33, adds, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
        "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
        "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(static_cast<int>(adds))
      : "memory");
}
__device__ __forceinline__ void multiply_bfloats(float (&d)[32], unsigned long long a,
                                                     unsigned long long b, bool adds) {
  asm volatile(
      "{\n .reg .pred adds;\n setp.ne.b32 adds, %34, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {\n"
      " %0, %1, %2, %3, %4, %5, %6, %7,\n"
      " %8, %9, %10, %11, %12, %13, %14, %15,\n"
      " %16, %17, %18, %19, %20, %21, %22, %23,\n"
      " %24, %25, %26, %27, %28, %29, %30, %31\n"
      " }, %32, %33, adds, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
        "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
        "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(static_cast<int>(adds))
      : "memory");
}

}  // namespace wgmma
}  // namespace accel_lab
