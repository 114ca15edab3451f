// A product of matrices by CUTLASS, with an end of ours. The names in capitals are options -D.
#include <cutlass/gemm/kernel/default_gemm_universal.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

namespace accel_lab {

using Kernel = typename gemm::kernel::DefaultGemmUniversal<
    ELEMENT, layout::LAYOUT_A, ComplexTransform::kNone, ALIGNMENT,
    ELEMENT, layout::LAYOUT_B, ComplexTransform::kNone, ALIGNMENT,
    MADE, layout::RowMajor, SUM, arch::UNIT, arch::CARD,
    gemm::GemmShape<TILE>, gemm::GemmShape<WARP>, gemm::GemmShape<INSTRUCTION>,
    Epilogue, gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, STAGES,
    arch::OPERATOR>::GemmKernel;

static const unsigned storage_bytes = (sizeof(Kernel::SharedStorage) + 127) / 128 * 128;

}  // namespace accel_lab

// The bytes of shared memory and the threads of a block.
extern "C" __device__ const unsigned facts[2] = {
    accel_lab::storage_bytes + sizeof(accel_lab::Kernel::Params), accel_lab::Kernel::kThreadCount};

// CUTLASS has the host make `Params` of the arguments. Here a thread of each block does.
extern "C" __global__ void __launch_bounds__(accel_lab::Kernel::kThreadCount)
    multiply(int m, int n, int k, SUM scale, SUM adds, const void* a, const void* b,
             const void* bias, void* d, long long lda, long long ldb, long long ldd) {
  using accel_lab::Kernel;
  extern __shared__ __align__(128) char shared[];
  auto* params = reinterpret_cast<typename Kernel::Params*>(shared + accel_lab::storage_bytes);
  if (threadIdx.x == 0) {
    typename Kernel::Arguments given(cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k}, 1,
                                     {scale, adds}, a, b, bias, d, 0, 0, 0, 0, lda, ldb, 0, ldd);
    new (params) typename Kernel::Params(given, 1, 1);
  }
  __syncthreads();
  Kernel()(*params, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
}
