// What a group makes of the values of all its threads.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

#define ACCEL_LAB_OPERATOR(name, expression)                                                   \
  template <class T = void> struct name {                                                      \
    T operator()(T a, T b) const { return expression; }                                        \
  };                                                                                           \
  template <> struct name<void> {                                                              \
    template <class T> T operator()(T a, T b) const { return expression; }                     \
  };
ACCEL_LAB_OPERATOR(plus, (T)(a + b))
ACCEL_LAB_OPERATOR(less, b < a ? b : a)
ACCEL_LAB_OPERATOR(greater, a < b ? b : a)
ACCEL_LAB_OPERATOR(bit_and, (T)(a & b))
ACCEL_LAB_OPERATOR(bit_or, (T)(a | b))
ACCEL_LAB_OPERATOR(bit_xor, (T)(a ^ b))
#undef ACCEL_LAB_OPERATOR

// Every thread gets the same. The order is that of the ranks.
template <class G, class T, class F> auto reduce(const G& group, const T& value, F&& combine) {
  typedef typename std::decay<T>::type V;
  V brought = value, total = value;
  bool begun = false;
  group.accel_lab.gather("reduce()", brought, [&](int, const V& other) {
    total = begun ? (V)combine(total, other) : other;
    begun = true;
  });
  return total;
}

}  // namespace cooperative_groups
