// Products of matrices of any shapes by CUTLASS: each block takes tiles of them all in turn.
#include <cutlass/gemm/kernel/default_gemm_grouped.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

namespace accel_lab {

using Kernel = typename gemm::kernel::DefaultGemmGrouped<
    ELEMENT, layout::LAYOUT_A, ComplexTransform::kNone, ALIGNMENT,
    ELEMENT, layout::LAYOUT_B, ComplexTransform::kNone, ALIGNMENT,
    MADE, layout::RowMajor, SUM, arch::UNIT, arch::Sm80,
    gemm::GemmShape<TILE>, gemm::GemmShape<WARP>, gemm::GemmShape<INSTRUCTION>,
    Epilogue, gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, STAGES,
    gemm::kernel::GroupScheduleMode::kDeviceOnly, arch::OPERATOR>::GemmKernel;

}  // namespace accel_lab

// The bytes of shared memory and the threads of a block.
extern "C" __device__ const unsigned facts[2] = {
    sizeof(accel_lab::Kernel::SharedStorage), accel_lab::Kernel::kThreadCount};

// `table` has eight rows of `count` words: where a, b, the bias and the result begin, and the steps
// of the four. A bias has the step 0: each row of a product reads it.
extern "C" __global__ void __launch_bounds__(accel_lab::Kernel::kThreadCount)
    multiply(cutlass::gemm::GemmCoord* problems, int count, SUM scale, SUM adds, long long* table) {
  using accel_lab::Kernel;
  extern __shared__ __align__(128) char shared[];
  auto at = [&](int row) { return table + row * static_cast<long long>(count); };
  typename Kernel::Arguments given(
      problems, count, gridDim.x, {scale, adds}, reinterpret_cast<ELEMENT**>(at(0)),
      reinterpret_cast<ELEMENT**>(at(1)), reinterpret_cast<MADE**>(at(2)),
      reinterpret_cast<MADE**>(at(3)), at(4), at(5), at(6), at(7));
  typename Kernel::Params params(given);
  Kernel()(params, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
}
