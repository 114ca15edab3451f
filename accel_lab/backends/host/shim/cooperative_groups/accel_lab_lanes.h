// What tiles and coalesced groups have: votes, and values that their threads tell each other.
#pragma once

namespace cooperative_groups {

template <class T> T accel_lab_from(const accel_lab_members& members, const T& value, int rank) {
  T found = value;
  const char* doing = "shfl() of a group";
  if (members.kind == accel_lab_members::LANES && sizeof(T) <= 8) {
    using namespace accel_lab_shim;
    unsigned char bytes[8] = {};
    memcpy(bytes, &value, sizeof(T) <= 8 ? sizeof(T) : 8);
    unsigned long long bits;
    memcpy(&bits, bytes, 8);
    bits = meet(doing, members.mask, bits, members.thread(rank) % 32, from_source);
    memcpy(&found, &bits, sizeof(T) <= 8 ? sizeof(T) : 8);
    return found;
  }
  members.gather(doing, value, [&](int i, const T& other) {
    if (i == rank) found = other;
  });
  return found;
}

class accel_lab_talking : public thread_group {
 public:
  unsigned size() const { return (unsigned)accel_lab.size(); }
  unsigned num_threads() const { return (unsigned)accel_lab.size(); }
  unsigned thread_rank() const { return (unsigned)accel_lab.rank(); }
  unsigned meta_group_rank() const { return part; }
  unsigned meta_group_size() const { return parts; }

  template <class T> T shfl(T value, int rank) const {
    return accel_lab_from(accel_lab, value, (int)((unsigned)rank % size()));
  }
  template <class T> T shfl_up(T value, unsigned delta) const {
    int own = accel_lab.rank(), from = own - (int)delta;
    return accel_lab_from(accel_lab, value, from < 0 ? own : from);
  }
  template <class T> T shfl_down(T value, unsigned delta) const {
    unsigned own = thread_rank(), from = own + delta;
    return accel_lab_from(accel_lab, value, (int)(from >= size() ? own : from));
  }
  int any(int predicate) const { return count(predicate) != 0; }
  int all(int predicate) const { return count(!predicate) == 0; }
  unsigned ballot(int predicate) const {
    unsigned bits = 0;
    accel_lab.gather("ballot() of a group", predicate, [&](int i, int other) {
      bits |= (unsigned)(other != 0) << i;
    });
    return bits;
  }
  template <class T> unsigned match_any(T value) const {
    unsigned bits = 0;
    accel_lab.gather("match_any() of a group", value, [&](int i, const T& other) {
      bits |= (unsigned)(memcmp(&other, &value, sizeof(T)) == 0) << i;
    });
    return bits;
  }
  template <class T> unsigned match_all(T value, int& same) const {
    unsigned bits = match_any(value);
    same = all(__builtin_popcount(bits) == (int)size());
    return same ? bits : 0;
  }

 protected:
  accel_lab_talking(accel_lab_members members, unsigned part, unsigned parts)
      : thread_group(members), part(part), parts(parts) {}

 private:
  int count(int predicate) const {
    int total = 0;
    accel_lab.gather("a vote of a group", predicate, [&](int, int other) { total += other != 0; });
    return total;
  }

  unsigned part, parts;
};

class coalesced_group : public accel_lab_talking {
 public:
  coalesced_group(accel_lab_members members, unsigned part = 0, unsigned parts = 1)
      : accel_lab_talking(members, part, parts) {}
};

inline accel_lab_members accel_lab_lanes(unsigned mask) {
  return {accel_lab_members::LANES, accel_lab_shim::current / 32 * 32, 0, mask};
}

__attribute__((always_inline)) inline coalesced_group coalesced_threads() {
  return coalesced_group(accel_lab_lanes(__activemask()));
}

}  // namespace cooperative_groups
