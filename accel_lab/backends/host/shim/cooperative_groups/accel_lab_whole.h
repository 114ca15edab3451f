// The block and the grid.
#pragma once

namespace cooperative_groups {

class thread_block : public thread_group {
 public:
  thread_block() : thread_group({accel_lab_members::BLOCK, 0, accel_lab_shim::threads, 0}) {}
  static void sync() { accel_lab_shim::wait_for_block("sync() of a block", 0); }
  static unsigned size() { return (unsigned)accel_lab_shim::threads; }
  static unsigned num_threads() { return size(); }
  static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_index() { return blockIdx; }
  static dim3 dim_threads() { return blockDim; }
  static dim3 group_dim() { return blockDim; }
  struct arrival_token {};
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token&&) const { sync(); }
};

inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  bool is_valid() const { return accel_lab_shim::cooperative; }
  void sync() const { accel_lab_shim::wait_for_grid(); }
  static unsigned long long size() { return num_blocks() * thread_block::size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
  }
  static unsigned long long block_rank() {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
  struct arrival_token {};
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token&&) const { sync(); }
};

inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups
