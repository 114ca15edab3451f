// Barriers of a block, and what the lanes of a warp tell each other.
#pragma once

namespace accel_lab_shim {

inline void wait_for_block(const char* doing, int predicate) {
  Fiber& fiber = fibers[current];
  if (!fibrous) {
    barrier_count = predicate;
    barrier_size = 1;
    return;
  }
  fiber.doing = doing;
  fiber.mask = 0;
  fiber.predicate = predicate;
  fiber.state = AT_BARRIER;
  yield();
}

// Release the lanes that have all arrived. Lanes that have ended are not waited for.
static void complete_warp(int warp) {
  Fiber* lanes = fibers + 32 * warp;
  int size = threads - 32 * warp < 32 ? threads - 32 * warp : 32;
  unsigned alive = 0;
  for (int i = 0; i < size; ++i) alive |= (unsigned)(lanes[i].state != ENDED) << i;
  for (int i = 0; i < size; ++i) {
    if (lanes[i].state != IN_WARP) continue;
    unsigned wanted = lanes[i].mask & alive;
    bool complete = true;
    for (int j = 0; j < size; ++j)
      if (wanted >> j & 1)
        complete = complete && lanes[j].state == IN_WARP && lanes[j].mask == lanes[i].mask &&
                   lanes[j].doing == lanes[i].doing;
    if (!complete) continue;
    for (int j = 0; j < size; ++j)
      if (wanted >> j & 1) lanes[j].result = lanes[j].combine(lanes, wanted, j);
    for (int j = 0; j < size; ++j)
      if (wanted >> j & 1) lanes[j].state = READY;
  }
}

// Release the tiles of several warps whose threads have all arrived.
static void complete_tiles() {
  for (int i = 0; i < threads; ++i) {
    if (fibers[i].state != IN_TILE) continue;
    int end = fibers[i].first + fibers[i].size;
    bool complete = true;
    for (int j = fibers[i].first; j < end && j < threads; ++j)
      complete = complete && (fibers[j].state == ENDED ||
                              (fibers[j].state == IN_TILE && fibers[j].first == fibers[i].first &&
                               fibers[j].size == fibers[i].size));
    for (int j = fibers[i].first; complete && j < end && j < threads; ++j)
      if (fibers[j].state == IN_TILE) fibers[j].state = READY;
  }
}

inline void wait_for_tile(const char* doing, int first, int size) {
  if (!fibrous) return;
  Fiber& fiber = fibers[current];
  fiber.doing = doing;
  fiber.mask = 0;
  fiber.first = first;
  fiber.size = size;
  fiber.state = IN_TILE;
  complete_tiles();
  yield();
}

inline void wait_for_grid() {
  if (!cooperative) {
    snprintf(failure, sizeof failure,
             "it waits for all blocks of its grid, which are there at once only in a cooperative "
             "launch: launch it with cooperative=True");
    stop();
  }
  fibers[current].doing = "this_grid().sync()";
  fibers[current].mask = 0;
  fibers[current].state = AT_GRID;
  yield();
}

// Wait for the lanes that come to the same place; the others end, or wait somewhere else.
__attribute__((noinline)) static unsigned together_at(const void* place) {
  if (!fibrous) return 1u << current % 32;
  Fiber& fiber = fibers[current];
  fiber.doing = "coalesced_threads()";
  fiber.mask = 0;
  fiber.at = place;
  fiber.state = MEETING;
  yield();
  return (unsigned)fiber.result;
}

// Say which thread of which block cannot go on with what it does, and end the launch.
[[noreturn]] static void refuse(const char* doing, const char* why, int lane, unsigned mask) {
  uint3 t = index_of(current);
  snprintf(failure, sizeof failure,
           "%s of thread (%u, %u, %u) in block (%u, %u, %u) %s %d, which is not in its mask "
           "0x%08x",
           doing, t.x, t.y, t.z, blockIdx.x, blockIdx.y, blockIdx.z, why, lane, mask);
  stop();
}

static unsigned long long meet(const char* doing, unsigned mask, unsigned long long value,
                               int source, Combine combine) {
  Fiber& fiber = fibers[current];
  fiber.doing = doing;
  fiber.mask = mask;
  fiber.value = value;
  fiber.source = source;
  if (!(mask >> current % 32 & 1)) refuse(doing, "is called by lane", current % 32, mask);
  if (!fibrous) return combine(fibers, 1, 0);
  fiber.combine = combine;
  fiber.state = IN_WARP;
  complete_warp(current / 32);
  yield();  // also where all have arrived: then the lower lanes go on first
  return fiber.result;
}

inline unsigned long long from_source(Fiber* lanes, unsigned arrived, int lane) {
  int source = lanes[lane].source;
  return arrived >> source & 1 ? lanes[source].value : lanes[lane].value;
}

inline unsigned long long ballot(Fiber* lanes, unsigned arrived, int) {
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i)
    if (arrived >> i & 1) bits |= (unsigned)(lanes[i].value != 0) << i;
  return (unsigned long long)arrived << 32 | bits;
}

inline unsigned long long equals(Fiber* lanes, unsigned arrived, int lane) {
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i)
    if (arrived >> i & 1) bits |= (unsigned)(lanes[i].value == lanes[lane].value) << i;
  return (unsigned long long)arrived << 32 | bits;
}

template <class T, T (*F)(T, T)>
unsigned long long reduced(Fiber* lanes, unsigned arrived, int lane) {
  T total = (T)lanes[lane].value;
  for (int i = 0; i < 32; ++i)
    if (i != lane && arrived >> i & 1) total = F(total, (T)lanes[i].value);
  return (unsigned long long)total;
}

template <class T> T sum(T a, T b) { return a + b; }
template <class T> T smaller(T a, T b) { return b < a ? b : a; }
template <class T> T larger(T a, T b) { return a < b ? b : a; }
template <class T> T both(T a, T b) { return a & b; }
template <class T> T either(T a, T b) { return a | b; }
template <class T> T differing(T a, T b) { return a ^ b; }

template <class T> unsigned long long bits_of(T value) {
  static_assert(sizeof(T) <= 8, "lanes exchange values of at most 8 bytes");
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T> T exchange(const char* doing, unsigned mask, T value, int source) {
  if (!(mask >> source & 1)) refuse(doing, "reads lane", source, mask);
  unsigned long long bits = meet(doing, mask, bits_of(value), source, from_source);
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline int lane() { return current % 32; }

}  // namespace accel_lab_shim

inline void __syncthreads() { accel_lab_shim::wait_for_block("__syncthreads()", 0); }

inline int __syncthreads_count(int predicate) {
  accel_lab_shim::wait_for_block("__syncthreads_count()", predicate != 0);
  return accel_lab_shim::barrier_count;
}

inline int __syncthreads_and(int predicate) {
  accel_lab_shim::wait_for_block("__syncthreads_and()", predicate != 0);
  return accel_lab_shim::barrier_count == accel_lab_shim::barrier_size;
}

inline int __syncthreads_or(int predicate) {
  accel_lab_shim::wait_for_block("__syncthreads_or()", predicate != 0);
  return accel_lab_shim::barrier_count != 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  accel_lab_shim::meet("__syncwarp()", mask, 0, 0, accel_lab_shim::ballot);
}

// The lanes that come here at once: those that have taken another way are not among them.
__attribute__((noinline)) static unsigned __activemask() {
  return accel_lab_shim::together_at(__builtin_return_address(0));
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  int lane = accel_lab_shim::lane();
  int from = (lane & ~(width - 1)) | (source & (width - 1));
  return accel_lab_shim::exchange("__shfl_sync()", mask, value, from);
}

template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = accel_lab_shim::lane(), from = lane - (int)delta;
  if (from < (lane & ~(width - 1))) from = lane;
  return accel_lab_shim::exchange("__shfl_up_sync()", mask, value, from);
}

template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = accel_lab_shim::lane(), from = lane + (int)delta;
  if (from > (lane | (width - 1))) from = lane;
  return accel_lab_shim::exchange("__shfl_down_sync()", mask, value, from);
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32) {
  int lane = accel_lab_shim::lane(), from = lane ^ flip;
  if (from > (lane | (width - 1))) from = lane;
  return accel_lab_shim::exchange("__shfl_xor_sync()", mask, value, from);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  using namespace accel_lab_shim;
  return (unsigned)meet("__ballot_sync()", mask, predicate != 0, 0, ballot);
}

inline int __any_sync(unsigned mask, int predicate) {
  using namespace accel_lab_shim;
  return (unsigned)meet("__any_sync()", mask, predicate != 0, 0, ballot) != 0;
}

inline int __all_sync(unsigned mask, int predicate) {
  using namespace accel_lab_shim;
  unsigned long long both = meet("__all_sync()", mask, predicate != 0, 0, ballot);
  return (unsigned)both == (unsigned)(both >> 32);
}

template <class T> unsigned __match_any_sync(unsigned mask, T value) {
  using namespace accel_lab_shim;
  return (unsigned)meet("__match_any_sync()", mask, bits_of(value), 0, equals);
}

template <class T> unsigned __match_all_sync(unsigned mask, T value, int* same) {
  using namespace accel_lab_shim;
  unsigned long long both = meet("__match_all_sync()", mask, bits_of(value), 0, equals);
  *same = (unsigned)both == (unsigned)(both >> 32);
  return *same ? (unsigned)both : 0;
}

#define ACCEL_LAB_REDUCE(name, T, combine)                                                     \
  inline T __reduce_##name##_sync(unsigned mask, T value) {                                    \
    using namespace accel_lab_shim;                                                            \
    return (T)meet("__reduce_" #name "_sync()", mask, (unsigned long long)value, 0,            \
                   reduced<T, combine<T>>);                                                    \
  }
ACCEL_LAB_REDUCE(add, unsigned, sum)
ACCEL_LAB_REDUCE(add, int, sum)
ACCEL_LAB_REDUCE(min, unsigned, smaller)
ACCEL_LAB_REDUCE(min, int, smaller)
ACCEL_LAB_REDUCE(max, unsigned, larger)
ACCEL_LAB_REDUCE(max, int, larger)
ACCEL_LAB_REDUCE(and, unsigned, both)
ACCEL_LAB_REDUCE(or, unsigned, either)
ACCEL_LAB_REDUCE(xor, unsigned, differing)
#undef ACCEL_LAB_REDUCE
