// Kernels that overlap the one ahead of them in a stream: launch them with programmatic=True.
// PTX: griddepcontrol; compute capability 9.0.
#pragma once

namespace accel_lab {

// Wait until the kernel ahead has ended and what it wrote can be read. Every thread that reads
// what others wrote, or writes what they read, calls this first.
__device__ __forceinline__ void wait_for_previous() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Let the kernel behind begin, once every block has called this or ended.
__device__ __forceinline__ void let_next_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace accel_lab
