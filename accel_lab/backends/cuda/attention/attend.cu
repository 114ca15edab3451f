// Attention of few queries to keys and values in pages: an online softmax (Milakov and Gimelshein,
// 2018), of which a block has one query of one head, and some of the keys that this sees. A lane of
// a warp has a key at a time for the scores, and LANE_FEATURES features for the sums of values.
// All sums have the same order in each launch of the same lengths.

#define WARPS (THREADS / 32)

struct Attend {
  const Element *q, *keys, *values, *sink;  // sink may be null
  Element* y;
  Wide* lse;         // may be null
  Wide* parts;       // (queries of all heads, splits, width + 2), if there are several splits
  const int* far;    // the numbers, where they are too many for here
  long long step[4]; // of q, in elements
  long long sink_step;
  double scale;
  int heads, shared, rows, width, page_size, columns, window, splits, count, is_alibi;
  int numbers[NUMBERS];  // the length of each sequence, and then a row of `columns` pages for each
};

struct alignas(VECTOR * sizeof(Element)) Vector { Element e[VECTOR]; };

__device__ float exponential(float x) { return expf(x); }
__device__ double exponential(double x) { return exp(x); }
__device__ float logarithm(float x) { return logf(x); }
__device__ double logarithm(double x) { return log(x); }
__device__ Wide larger(Wide a, Wide b) { return a > b || b != b ? a : b; }
__device__ Wide lowest() { return -(Wide)__longlong_as_double(0x7ff0000000000000ll); }
__device__ Wide or_zero(Wide x) { return x == lowest() ? (Wide)0 : x; }
__device__ int number(const Attend& m, int i) { return m.far ? m.far[i] : m.numbers[i]; }

// Write one feature of what a query gets.
__device__ void finish(const Attend& m, long long query, Wide top, Wide total, Wide sum) {
  if (m.sink) {
    Wide sink = widened(m.sink[query / m.rows % m.heads * m.sink_step]);
    Wide above = larger(top, sink), base = or_zero(above), shrunk = exponential(top - base);
    total = total * shrunk + exponential(sink - base);
    sum *= shrunk;
    top = above;
  }
  int feature = threadIdx.x;
  if (feature < m.width)
    m.y[query * m.width + feature] = rounded(sum / (total == 0 ? (Wide)1 : total));
  if (m.lse && feature == 0) m.lse[query] = top + logarithm(total);
}

__device__ Wide score_of(const Attend& m, const Wide* query, const Element* key) {
  Wide sums[4] = {0, 0, 0, 0};
  int i = 0;
  for (; i + 4 <= m.width; i += 4) {
    for (int j = 0; j < 4; j += VECTOR) {
      Vector some = *(const Vector*)(key + i + j);
      for (int k = 0; k < VECTOR; ++k) sums[j + k] += query[i + j + k] * widened(some.e[k]);
    }
  }
  for (; i < m.width; ++i) sums[0] += query[i] * widened(key[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) * (Wide)m.scale;
}

// The grid is (queries of all heads of all sequences, splits).
extern "C" __global__ void attend(const __grid_constant__ Attend m) {
  __shared__ Wide query[32 * LANE_FEATURES];
  __shared__ Wide weights[WARPS][32];
  __shared__ long long places[WARPS][32];
  __shared__ Wide tops[WARPS], totals[WARPS], sums[WARPS][32 * LANE_FEATURES];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long at = blockIdx.x;
  int row = (int)(at % m.rows), head = (int)(at / m.rows % m.heads);
  int one = (int)(at / m.rows / m.heads), of_keys = head / (m.heads / m.shared);
  if ((int)threadIdx.x < m.width) {
    const Element* q = m.q + one * m.step[0] + head * m.step[1] + row * m.step[2];
    query[threadIdx.x] = widened(q[threadIdx.x * m.step[3]]);
  }
  __syncthreads();

  // A query is beside a key, and sees it and those before.
  int beside = number(m, one) - m.rows + row;
  int begin = m.window && beside >= m.window ? beside - m.window + 1 : 0;
  int from = begin + (int)blockIdx.y * SPAN;
  int to = beside + 1 < from + SPAN ? beside + 1 : from + SPAN;
  Wide slope = m.is_alibi ? (Wide)exp2(-8.0 * (head + 1) / m.heads) : (Wide)0;
  Wide top = lowest(), total = 0, sum[LANE_FEATURES];
  for (int i = 0; i < LANE_FEATURES; ++i) sum[i] = 0;
  for (int first = from + 32 * warp; first < to; first += 32 * WARPS) {
    int key = first + lane;
    long long place = 0;
    Wide score = lowest();
    if (key < to) {
      long long page = number(m, m.count + one * m.columns + key / m.page_size);
      place = ((page * m.shared + of_keys) * m.page_size + key % m.page_size) * m.width;
      score = score_of(m, query, m.keys + place);
      if (m.is_alibi) score += slope * (Wide)(key - beside);
    }
    Wide above = larger(top, score);
    for (int flip = 16; flip > 0; flip /= 2)
      above = larger(above, __shfl_xor_sync(0xffffffffu, above, flip));
    Wide base = or_zero(above), weight = exponential(score - base), added = weight;
    for (int flip = 16; flip > 0; flip /= 2)
      added += __shfl_xor_sync(0xffffffffu, added, flip);
    weights[warp][lane] = weight;
    places[warp][lane] = place;
    __syncwarp();
    Wide shrunk = exponential(top - base);
    total = total * shrunk + added;
    for (int i = 0; i < LANE_FEATURES; ++i) sum[i] *= shrunk;
    int seen = to - first < 32 ? to - first : 32;
#pragma unroll 4
    for (int j = 0; j < seen; ++j) {
      const Element* value = m.values + places[warp][j];
      for (int i = 0; i < LANE_FEATURES; ++i)
        if (lane + 32 * i < m.width) sum[i] += weights[warp][j] * widened(value[lane + 32 * i]);
    }
    __syncwarp();
    top = above;
  }

  for (int i = 0; i < LANE_FEATURES; ++i) sums[warp][lane + 32 * i] = sum[i];
  if (lane == 0) {
    tops[warp] = top;
    totals[warp] = total;
  }
  __syncthreads();
  top = lowest();
  for (int i = 0; i < WARPS; ++i) top = larger(top, tops[i]);
  Wide base = or_zero(top), whole = 0;
  total = 0;
  for (int i = 0; i < WARPS; ++i) {
    Wide shrunk = exponential(tops[i] - base);
    total += totals[i] * shrunk;
    if ((int)threadIdx.x < m.width) whole += sums[i][threadIdx.x] * shrunk;
  }
  if (m.splits == 1) {
    finish(m, at, top, total, whole);
    return;
  }
  Wide* part = m.parts + (at * m.splits + blockIdx.y) * (m.width + 2);
  if ((int)threadIdx.x < m.width) part[threadIdx.x] = whole;
  if (threadIdx.x == 0) {
    part[m.width] = top;
    part[m.width + 1] = total;
  }
}

// The grid is (queries of all heads of all sequences), after `attend` of several splits.
extern "C" __global__ void merge(const __grid_constant__ Attend m) {
  long long at = blockIdx.x;
  int each = m.width + 2;
  const Wide* parts = m.parts + at * m.splits * each;
  Wide top = lowest(), total = 0, whole = 0;
  for (int i = 0; i < m.splits; ++i) top = larger(top, parts[i * each + m.width]);
  Wide base = or_zero(top);
  for (int i = 0; i < m.splits; ++i) {
    Wide shrunk = exponential(parts[i * each + m.width] - base);
    total += parts[i * each + m.width + 1] * shrunk;
    if ((int)threadIdx.x < m.width) whole += parts[i * each + threadIdx.x] * shrunk;
  }
  finish(m, at, top, total, whole);
}
