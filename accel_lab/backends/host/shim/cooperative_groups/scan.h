// What a group makes of the values of its threads up to each one.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <class G, class T, class F>
auto inclusive_scan(const G& group, const T& value, F&& combine) {
  typedef typename std::decay<T>::type V;
  V brought = value, total = value;
  bool begun = false;
  int own = group.accel_lab.rank();
  group.accel_lab.gather("inclusive_scan()", brought, [&](int rank, const V& other) {
    if (rank > own) return;
    total = begun ? (V)combine(total, other) : other;
    begun = true;
  });
  return total;
}
template <class G, class T> auto inclusive_scan(const G& group, const T& value) {
  return inclusive_scan(group, value, plus<typename std::decay<T>::type>());
}

// The thread of rank 0 gets 0.
template <class G, class T, class F>
auto exclusive_scan(const G& group, const T& value, F&& combine) {
  typedef typename std::decay<T>::type V;
  V brought = value, total = {};
  bool begun = false;
  int own = group.accel_lab.rank();
  group.accel_lab.gather("exclusive_scan()", brought, [&](int rank, const V& other) {
    if (rank >= own) return;
    total = begun ? (V)combine(total, other) : other;
    begun = true;
  });
  return total;
}
template <class G, class T> auto exclusive_scan(const G& group, const T& value) {
  return exclusive_scan(group, value, plus<typename std::decay<T>::type>());
}

}  // namespace cooperative_groups
