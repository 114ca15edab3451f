// A product of matrices by CUTLASS, whose epilogue visits each element with the user's function.
// The names in capitals are macros.
#include <cutlass/gemm/kernel/default_gemm_universal.h>
#include <cutlass/epilogue/threadblock/epilogue_base_streamk.h>
#include <cutlass/epilogue/threadblock/epilogue_with_visitor_callbacks.h>
#include <cutlass/gemm/kernel/gemm_universal_with_visitor.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

namespace accel_lab {

using Swizzle = gemm::threadblock::GemmIdentityThreadblockSwizzle<8>;
using Plain = typename gemm::kernel::DefaultGemmUniversal<
    ELEMENT, layout::LAYOUT_A, ComplexTransform::kNone, ALIGNMENT,
    ELEMENT, layout::LAYOUT_B, ComplexTransform::kNone, ALIGNMENT,
    MADE, layout::RowMajor, SUM, arch::UNIT, arch::CARD,
    gemm::GemmShape<TILE>, gemm::GemmShape<WARP>, gemm::GemmShape<INSTRUCTION>,
    Epilogue, Swizzle, STAGES, arch::OPERATOR>::GemmKernel;
using Map = typename Plain::Epilogue::OutputTileIterator::ThreadMap;

// What one thread does with a tile. Where its elements are is as in PredicatedTileIterator.
struct Callbacks {
  const Visitor& visitor;
  MADE* d;
  int rows, columns;  // of the product
  int row, column;    // where the thread's first element of a step is
  int in_group = 0, in_cluster = 0;

  CUTLASS_DEVICE void begin_epilogue() {}
  CUTLASS_DEVICE void begin_step(int) {}
  CUTLASS_DEVICE void begin_row(int) {}

  template <int N>
  CUTLASS_DEVICE void visit(int, int at_row, int at_column, int, const Array<SUM, N>& sums) {
    using Steps = typename Map::Iterations;
    using Delta = typename Map::Delta;
    int y = row + at_row % Steps::kRow * Delta::kRow +
            at_row / Steps::kRow % Steps::kGroup * Delta::kGroup +
            at_row / Steps::kRow / Steps::kGroup * Delta::kCluster;
    int x = column + at_column * Delta::kColumn;
    if (y < rows && x < columns) accel_lab::visit<N>(visitor, sums, y, x, columns, d);
  }

  CUTLASS_DEVICE void end_row(int) {}

  CUTLASS_DEVICE void end_step(int) {
    using Shape = typename Map::Shape;
    using Count = typename Map::Count;
    row += Shape::kRow;
    if (++in_group < Count::kRow) return;
    in_group = 0;
    row += (Shape::kGroup - 1) * Shape::kRow * Count::kRow;
    if (++in_cluster < Count::kGroup) return;
    in_cluster = 0;
    row += Count::kGroup * Shape::kGroup * Count::kRow * Shape::kRow;
  }

  CUTLASS_DEVICE void end_epilogue() {}
};

// What CUTLASS takes for a tree of visitors: one node, which is the user's function.
struct Fusion {
  struct SharedStorage {};
  struct Arguments {
    Visitor visitor;
    MADE* d;
  };
  using Params = Arguments;

  const Params* params;

  template <class Shape>
  static constexpr Params to_underlying_arguments(const Shape&, const Arguments& given, void*) {
    return given;
  }

  CUTLASS_DEVICE Fusion(const Params& given, SharedStorage&) : params(&given) {}

  template <class Shape>
  CUTLASS_DEVICE auto get_callbacks(gemm::GemmCoord tile, int thread, const Shape& problem) {
    auto first = Map::initial_offset(thread);
    return Callbacks{params->visitor, params->d, cute::get<0>(problem), cute::get<1>(problem),
                     tile.m() * Plain::Mma::Shape::kM + first.row(),
                     tile.n() * Plain::Mma::Shape::kN + first.column()};
  }
};

using Kernel = gemm::kernel::GemmWithEpilogueVisitor<
    typename Plain::Mma,
    epilogue::threadblock::EpilogueWithVisitorCallbacks<typename Plain::Epilogue, Fusion, 1>, Swizzle>;

static const unsigned storage_bytes = (sizeof(Kernel::SharedStorage) + 127) / 128 * 128;

}  // namespace accel_lab

// The bytes of shared memory and the threads of a block.
extern "C" __device__ const unsigned facts[2] = {
    accel_lab::storage_bytes + sizeof(accel_lab::Kernel::Params), accel_lab::Kernel::kThreadCount};

// CUTLASS has the host make `Params` of the arguments. Here a thread of each block does.
extern "C" __global__ void __launch_bounds__(accel_lab::Kernel::kThreadCount)
    multiply(int m, int n, int k, const void* a, const void* b, long long lda, long long ldb,
             const __grid_constant__ accel_lab::Visitor visitor, MADE* d) {
  using accel_lab::Kernel;
  extern __shared__ __align__(128) char shared[];
  auto* params = reinterpret_cast<typename Kernel::Params*>(shared + accel_lab::storage_bytes);
  if (threadIdx.x == 0) {
    typename Kernel::Arguments given(cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k}, 1,
                                     {visitor, d}, a, b, nullptr, d, 0, 0, 0, 0, lda, ldb,
                                     static_cast<long long>(n), static_cast<long long>(n));
    new (params) typename Kernel::Params(given, 1, 1);
  }
  __syncthreads();
  Kernel()(*params, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
}
