// The layer norm (CENTERED) or RMS norm of a row, which one block has. Sums have the same order in
// each launch. What is written may be what is read: a thread reads an element before it writes it,
// and no other reads that afterwards.

struct Norm {
  const Element *x, *scale, *bias;  // scale and bias may be null
  Element* y;
  long long width;
  double epsilon;
};

__device__ float root(float x) { return sqrtf(x); }
__device__ double root(double x) { return sqrt(x); }

// The sum over a block, for each thread.
__device__ Wide block_sum(Wide x, Wide* of_warps) {
  for (int flip = 16; flip > 0; flip /= 2) x += __shfl_xor_sync(0xffffffffu, x, flip);
  if (blockDim.x == 32) return x;
  __syncthreads();  // what the sum before has left there is read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  Wide sum = 0;
  for (int warp = 0; warp < (int)blockDim.x / 32; ++warp) sum += of_warps[warp];
  return sum;
}

extern "C" __global__ void normalize(const __grid_constant__ Norm m) {
  __shared__ Wide of_warps[32];
  const Element* x = m.x + blockIdx.x * m.width;
  Element* y = m.y + blockIdx.x * m.width;
  Wide mean = 0, squares = 0;
  if (CENTERED) {
    Wide sum = 0;
    for (long long i = threadIdx.x; i < m.width; i += blockDim.x) sum += widened(x[i]);
    mean = block_sum(sum, of_warps) / (Wide)m.width;
  }
  for (long long i = threadIdx.x; i < m.width; i += blockDim.x) {
    Wide off = widened(x[i]) - mean;
    squares += off * off;
  }
  Wide by = root(block_sum(squares, of_warps) / (Wide)m.width + (Wide)m.epsilon);
  for (long long i = threadIdx.x; i < m.width; i += blockDim.x) {
    Wide made = (widened(x[i]) - mean) / by;
    if (m.scale) made *= widened(m.scale[i]);
    if (m.bias) made += widened(m.bias[i]);
    y[i] = rounded(made);
  }
}
