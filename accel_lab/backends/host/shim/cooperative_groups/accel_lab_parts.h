// Tiles of a block, and groups of some of their threads.
#pragma once

namespace cooperative_groups {

template <unsigned Size, class Parent = void> class thread_block_tile : public accel_lab_talking {
 public:
  static_assert(Size > 0 && Size <= 1024 && (Size & (Size - 1)) == 0,
                "a tile has 1, 2, 4 ... 1024 threads");
  explicit thread_block_tile(const accel_lab_talking& other) : accel_lab_talking(other) {}
  thread_block_tile(accel_lab_members members, unsigned part, unsigned parts)
      : accel_lab_talking(members, part, parts) {}
  template <class Other> thread_block_tile(const thread_block_tile<Size, Other>& other)
      : accel_lab_talking(other) {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }

  template <class T> T shfl_up(T value, unsigned delta) const {
    int own = accel_lab.rank(), from = own - (int)delta;
    return accel_lab_from(accel_lab, value, from < 0 ? own : from);
  }
  template <class T> T shfl(T value, int rank) const {
    return accel_lab_from(accel_lab, value, (int)((unsigned)rank % Size));
  }
  template <class T> T shfl_down(T value, unsigned delta) const {
    unsigned own = thread_rank(), from = own + delta;
    return accel_lab_from(accel_lab, value, (int)(from >= Size ? own : from));
  }
  template <class T> T shfl_xor(T value, unsigned mask) const {
    return accel_lab_from(accel_lab, value, (int)((thread_rank() ^ mask) % Size));
  }
};

// A tile around this thread of a group whose threads lie one behind another.
inline accel_lab_members accel_lab_tile(const accel_lab_members& parent, unsigned size) {
  int first = parent.first, place = accel_lab_shim::current;
  if (parent.kind == accel_lab_members::LANES) first += __builtin_ctz(parent.mask);
  first += (place - first) / (int)size * (int)size;
  if (size > 32) return {accel_lab_members::TILE, first, (int)size, 0};
  unsigned mask = size == 32 ? ~0u : ((1u << size) - 1) << first % 32;
  return {accel_lab_members::LANES, first / 32 * 32, 0, mask};
}

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
  unsigned all = (unsigned)parent.accel_lab.size(), rank = (unsigned)parent.accel_lab.rank();
  return {accel_lab_tile(parent.accel_lab, Size), rank / Size, (all + Size - 1) / Size};
}

// A tile whose size is known when the kernel runs.
inline coalesced_group tiled_partition(const thread_group& parent, unsigned size) {
  unsigned all = (unsigned)parent.accel_lab.size(), rank = (unsigned)parent.accel_lab.rank();
  if (parent.accel_lab.kind != accel_lab_members::LANES || size >= 32)
    return {accel_lab_tile(parent.accel_lab, size), rank / size, (all + size - 1) / size};
  unsigned mask = 0;  // of a coalesced group: those whose ranks lie together
  for (unsigned i = rank / size * size; i < all && i < (rank / size + 1) * size; ++i)
    mask |= 1u << parent.accel_lab.thread((int)i) % 32;
  return {accel_lab_lanes(mask), rank / size, (all + size - 1) / size};
}

// The threads of a group that have the same label, numbered in the order of their first threads.
template <class G, class Label> coalesced_group labeled_partition(const G& group, Label label) {
  unsigned mask = 0, part = 0, parts = 0;
  Label seen[32] = {};
  group.accel_lab.gather("a partition of a group", label, [&](int i, const Label& other) {
    unsigned place = 0;
    while (place < parts && !(seen[place] == other)) ++place;
    if (place == parts) seen[parts++] = other;
    if (!(other == label)) return;
    part = place;
    mask |= 1u << group.accel_lab.thread(i) % 32;
  });
  return {accel_lab_lanes(mask), part, parts};
}

// Those for which a predicate is true, and the others.
template <class G> coalesced_group binary_partition(const G& group, bool predicate) {
  coalesced_group part = labeled_partition(group, (int)predicate);
  if (part.meta_group_size() == 2) part = {part.accel_lab, predicate, 2};
  return part;
}
template <class G> coalesced_group labeled_partition(const G& group, bool label) {
  return binary_partition(group, label);
}

// Have one thread of a group call a function.
template <class G, class F, class... A> void invoke_one(const G& group, F&& call, A&&... with) {
  if (group.accel_lab.rank() == 0) call(std::forward<A>(with)...);
}
template <class G, class F, class... A>
auto invoke_one_broadcast(const G& group, F&& call, A&&... with) {
  decltype(call(std::forward<A>(with)...)) made = {};
  if (group.accel_lab.rank() == 0) made = call(std::forward<A>(with)...);
  return accel_lab_from(group.accel_lab, made, 0);
}

// Room for tiles of several warps: the host needs none.
template <unsigned Threads> struct block_tile_memory {};
template <unsigned Threads> thread_block this_thread_block(block_tile_memory<Threads>&) {
  return {};
}

}  // namespace cooperative_groups
