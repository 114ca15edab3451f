// How the user's function ends the elements of a product. It stands behind `ends.cuh`. CALL is the
// call for one element; TAKES_C and its like are 1 for what the function is given.
namespace accel_lab {

// What there is beside the sums; addresses that the function is not given are null.
struct Visitor {
  const MADE *c, *row, *column;
  MADE* aux;
  SUM numbers[8];
};

// End N elements beside each other, from row `y` and column `x` on, which is a multiple of N, as the
// number of columns is.
template <int N>
__device__ __forceinline__ void visit(const Visitor& visitor, const Array<SUM, N>& sums, int y, int x,
                                      int columns, MADE* d) {
  using Vector = AlignedArray<MADE, N>;
  const long long at = static_cast<long long>(y) * columns + x;
  const auto& numbers = visitor.numbers;
  Vector cs, rows, made, second;
  SUM column = SUM(0);
  if constexpr (TAKES_C) cs = *reinterpret_cast<const Vector*>(visitor.c + at);
  if constexpr (TAKES_ROW) rows = *reinterpret_cast<const Vector*>(visitor.row + x);
  if constexpr (TAKES_COLUMN) column = static_cast<SUM>(visitor.column[y]);
  CUTLASS_PRAGMA_UNROLL
  for (int i = 0; i < N; ++i) {
    const SUM sum = sums[i];
    SUM c = SUM(0), row = SUM(0), aux = SUM(0);
    if constexpr (TAKES_C) c = static_cast<SUM>(cs[i]);
    if constexpr (TAKES_ROW) row = static_cast<SUM>(rows[i]);
    made[i] = static_cast<MADE>(static_cast<SUM>(CALL));
    second[i] = static_cast<MADE>(aux);
  }
  *reinterpret_cast<Vector*>(d + at) = made;
  if constexpr (WRITES_AUX) *reinterpret_cast<Vector*>(visitor.aux + at) = second;
}

}  // namespace accel_lab
