"""Loops in C++ around the user's operators: one thread, one source for every dtype.

Parameters are pointers only; `numbers` are int64. `$T` is the type of an element, `$op` the
operator's name.
"""

FOLD = """
__global__ void accel_lab_fold(
    const $T* x, const long long* starts, const long long* ends, const $T* init, $T* out,
    const long long* numbers) {
  for (long long s = 0; s < numbers[0]; ++s) {
    long long i = starts[s];
    $T made = numbers[1] ? init[0] : x[i++];
    for (; i < ends[s]; ++i) made = $op(made, x[i]);
    out[s] = made;
  }
}
"""
SCAN = """
__global__ void accel_lab_scan(
    const $T* x, const bool* heads, const $T* init, $T* out, const long long* numbers) {
  const bool exclusive = numbers[1], has_init = numbers[2];
  $T made = init[0];
  for (long long i = 0; i < numbers[0]; ++i) {
    const bool first = heads[i];
    if (exclusive) {
      if (first) made = init[0];
      const $T before = made;
      made = $op(made, x[i]);
      out[i] = before;
    } else {
      out[i] = made = first ? (has_init ? $op(init[0], x[i]) : x[i]) : $op(made, x[i]);
    }
  }
}
"""
UNARY = """
__global__ void accel_lab_unary(const $T* x, $R* out, const long long* numbers) {
  for (long long i = 0; i < numbers[0]; ++i) out[i] = $op(x[i]);
}
"""
BINARY = """
__global__ void accel_lab_binary(
    const $T* x, const $T* y, $R* out, const long long* numbers) {
  for (long long i = 0; i < numbers[0]; ++i) out[i] = $op(x[i], y[i]);
}
"""
ORDER = """
__global__ void accel_lab_order(
    const $T* x, long long* at, long long* other, const long long* numbers) {
  const long long n = numbers[0];
  long long *from = at, *to = other;
  for (long long width = 1; width < n; width *= 2) {
    for (long long low = 0; low < n; low += 2 * width) {
      const long long middle = low + width < n ? low + width : n;
      const long long high = low + 2 * width < n ? low + 2 * width : n;
      long long left = low, right = middle;
      for (long long k = low; k < high; ++k) {
        const bool takes_right =
            left == middle || (right < high && $op(x[from[right]], x[from[left]]));
        to[k] = takes_right ? from[right++] : from[left++];
      }
    }
    long long* was = from;
    from = to;
    to = was;
  }
  if (from != at)
    for (long long k = 0; k < n; ++k) at[k] = from[k];
}
"""
LOOPS = {"fold": FOLD, "scan": SCAN, "unary": UNARY, "binary": BINARY, "order": ORDER}
