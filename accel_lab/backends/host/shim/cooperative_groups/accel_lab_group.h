// What all groups within a block are: some threads of it, by their numbers.
#pragma once

namespace cooperative_groups {

// The threads from `first` on: `count` of them, or the lanes of `mask` in the warp of `first`.
struct accel_lab_members {
  enum Kind { BLOCK, LANES, TILE } kind;
  int first;
  int count;
  unsigned mask;

  int size() const { return kind == LANES ? __builtin_popcount(mask) : count; }
  int rank() const {
    int place = accel_lab_shim::current - first;
    return kind == LANES ? __builtin_popcount(mask & ((1u << place) - 1)) : place;
  }
  // The thread of a rank; the last one where there are not so many.
  int thread(int rank) const {
    if (kind != LANES) return first + (rank < count ? rank : count - 1);
    unsigned left = mask;
    for (int i = 0; i < rank && (left & (left - 1)); ++i) left &= left - 1;
    return first + __builtin_ctz(left);
  }
  // The bits of lanes as bits of ranks.
  unsigned by_rank(unsigned lanes) const {
    unsigned bits = 0;
    int rank = 0;
    for (int i = 0; i < 32; ++i)
      if (mask >> i & 1) bits |= (lanes >> i & 1) << rank++;
    return bits;
  }
  void wait(const char* doing) const {
    if (kind == BLOCK) accel_lab_shim::wait_for_block(doing, 0);
    else if (kind == TILE) accel_lab_shim::wait_for_tile(doing, first, count);
    else accel_lab_shim::meet(doing, mask, 0, 0, accel_lab_shim::ballot);
  }
  // What `look` makes of the values that all members have brought, given one by one by rank.
  template <class T, class Look> void gather(const char* doing, const T& value, Look look) const {
    using namespace accel_lab_shim;
    fibers[current].at = &value;
    wait(doing);
    for (int i = 0, n = size(); i < n; ++i) {
      if (thread(i) >= threads) break;  // the last tile of a block may lack some
      const Fiber& other = fibers[thread(i)];
      if (other.state != ENDED) look(i, *static_cast<const T*>(other.at));
    }
    wait(doing);
  }
};

class thread_group {
 public:
  void sync() const { accel_lab.wait("sync() of a group"); }
  unsigned long long size() const { return (unsigned)accel_lab.size(); }
  unsigned long long num_threads() const { return (unsigned)accel_lab.size(); }
  unsigned long long thread_rank() const { return (unsigned)accel_lab.rank(); }
  bool is_valid() const { return true; }

  accel_lab_members accel_lab;

 protected:
  explicit thread_group(accel_lab_members members) : accel_lab(members) {}
};

template <class G> void sync(const G& group) { group.sync(); }
template <class G> auto thread_rank(const G& group) { return group.thread_rank(); }
template <class G> auto group_size(const G& group) { return group.size(); }

}  // namespace cooperative_groups
