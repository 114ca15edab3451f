// Convolutions of images and their gradients by CUTLASS: products whose matrices are never made.
#include <cutlass/conv/kernel/default_conv2d_dgrad.h>
#include <cutlass/conv/kernel/default_conv2d_fprop.h>
#include <cutlass/conv/kernel/default_conv2d_wgrad.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

namespace accel_lab {

using Layout = layout::TensorNHWC;
using Kernel = typename conv::kernel::DIRECTION<
    ELEMENT, Layout, ELEMENT, Layout, MADE, Layout, SUM, arch::UNIT, arch::Sm80,
    gemm::GemmShape<TILE>, gemm::GemmShape<WARP>, gemm::GemmShape<INSTRUCTION>,
    Epilogue, gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, STAGES, arch::OPERATOR,
    conv::IteratorAlgorithm::kOptimized, conv::StrideSupport::STRIDES, ALIGNMENT, ALIGNMENT>::Kernel;

static const unsigned storage_bytes = (sizeof(Kernel::SharedStorage) + 127) / 128 * 128;

}  // namespace accel_lab

// The bytes of shared memory and the threads of a block.
extern "C" __device__ const unsigned facts[2] = {
    accel_lab::storage_bytes + sizeof(accel_lab::Kernel::Params), accel_lab::Kernel::kThreadCount};

// CUTLASS has the host make `Params` of the arguments. Here a thread of each block does.
extern "C" __global__ void __launch_bounds__(accel_lab::Kernel::kThreadCount)
    multiply(int n, int h, int w, int c, int k, int r, int s, int p, int q, int pad_h, int pad_w,
             int stride_h, int stride_w, int dilation_h, int dilation_w, SUM scale, SUM adds,
             ELEMENT* a, ELEMENT* b, MADE* bias, MADE* d) {
  using namespace accel_lab;
  extern __shared__ __align__(128) char shared[];
  auto* params = reinterpret_cast<typename Kernel::Params*>(shared + storage_bytes);
  if (threadIdx.x == 0) {
    conv::Conv2dProblemSize problem(n, h, w, c, k, r, s, p, q, pad_h, pad_w, stride_h, stride_w,
                                    dilation_h, dilation_w, conv::Mode::kCrossCorrelation);
    Layout image = Layout::packed({n, h, w, c}), made = Layout::packed({n, p, q, k}),
           filter = Layout::packed({k, r, s, c});
    constexpr auto direction = Kernel::kConvolutionalOperator;
    Layout of_a = direction == conv::Operator::kFprop ? image : made;
    Layout of_b = direction == conv::Operator::kWgrad ? image : filter;
    Layout of_d = direction == conv::Operator::kFprop   ? made
                  : direction == conv::Operator::kDgrad ? image
                                                        : filter;
    typename Kernel::Arguments given(problem, {a, of_a}, {b, of_b}, {bias, Layout(Layout::Stride(0))},
                                     {d, of_d}, {scale, adds});
    new (params) typename Kernel::Params(given);
  }
  __syncthreads();
  Kernel()(*params, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
}
