// Copy the keys and the values of new tokens to their places in pages.

struct Append {
  const Element *k, *v;
  Element *keys, *values;
  const int* far;           // the numbers, where they are too many for here
  long long steps[2][4];    // of k and of v, in elements
  long long elements;       // of each
  int heads, tokens, width, page_size, count, unused;
  int numbers[NUMBERS];     // the page of each token of each sequence, and then their offsets
};

// The grid is (blocks that cover the elements, two).
extern "C" __global__ void append(const __grid_constant__ Append m) {
  const Element* x = blockIdx.y ? m.v : m.k;
  Element* pages = blockIdx.y ? m.values : m.keys;
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < m.elements; i += step) {
    long long rest = i / m.width, feature = i % m.width;
    long long token = rest % m.tokens, head = rest / m.tokens % m.heads;
    long long sequence = rest / m.tokens / m.heads;
    int at = (int)(sequence * m.tokens + token);
    long long page = m.far ? m.far[at] : m.numbers[at];
    int offset = m.far ? m.far[m.count + at] : m.numbers[m.count + at];
    long long from = sequence * m.steps[blockIdx.y][0] + head * m.steps[blockIdx.y][1] +
                     token * m.steps[blockIdx.y][2] + feature * m.steps[blockIdx.y][3];
    pages[((page * m.heads + head) * m.page_size + offset) * m.width + feature] = x[from];
  }
}
