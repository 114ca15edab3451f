// Sparse matrices of triplets, and in the format ELL. `Value` is what they hold; sums of entries are in float64.
//
// ELL has as many entries for each row as the longest has, the first of all rows, then the second of all:
// `columns[k * rows + row]`. Beyond the end of a row the column is -1.

// A key for each triplet, ascending by rows and then columns. `first_bad` is the first one outside of the matrix.
extern "C" __global__ void entry_keys(const long long* rows, const long long* columns, int n, int height, int width,
                                      long long* keys, int* order, int* first_bad) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    bool is_in = rows[i] >= 0 && rows[i] < height && columns[i] >= 0 && columns[i] < width;
    if (!is_in) atomicMin(first_bad, i);
    keys[i] = is_in ? rows[i] * width + columns[i] : 0;
    order[i] = i;
  }
}

extern "C" __global__ void first_of_each(const long long* keys, int n, long long* is_first) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    is_first[i] = i == 0 || keys[i] != keys[i - 1];
}

// Adds up the triplets of one place, in the order in which they were given. `slots` counts places from 1 on.
extern "C" __global__ void sum_entries(const long long* keys, const int* order, const Value* values,
                                       const long long* slots, int n, int width, int* rows, int* columns,
                                       Value* sums) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (i > 0 && keys[i] == keys[i - 1]) continue;
    double sum = 0;
    for (int k = i; k < n && keys[k] == keys[i]; ++k) sum += values[order[k]];
    long long slot = slots[i] - 1;
    rows[slot] = (int)(keys[i] / width);
    columns[slot] = (int)(keys[i] % width);
    sums[slot] = (Value)sum;
  }
}

extern "C" __global__ void fill_ell(const int* pointers, const int* columns, const Value* values, int rows,
                                    int longest, int* ell_columns, Value* ell_values) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x)
    for (int k = 0; k < longest; ++k) {
      int from = pointers[row] + k;
      bool is_entry = from < pointers[row + 1];
      ell_columns[k * rows + row] = is_entry ? columns[from] : -1;
      ell_values[k * rows + row] = is_entry ? values[from] : (Value)0;
    }
}

// `lengths` has one more than there are rows, which is 0.
extern "C" __global__ void ell_lengths(const int* ell_columns, int rows, int longest, int* lengths) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row <= rows; row += gridDim.x * blockDim.x) {
    int length = 0;
    while (row < rows && length < longest && ell_columns[length * rows + row] >= 0) ++length;
    lengths[row] = length;
  }
}

extern "C" __global__ void pack_ell(const int* ell_columns, const Value* ell_values, const int* pointers, int rows,
                                    int* columns, Value* values) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x)
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
      columns[k] = ell_columns[(k - pointers[row]) * rows + row];
      values[k] = ell_values[(k - pointers[row]) * rows + row];
    }
}

// Multiplies with a matrix of `width` columns; with a vector it is 1.
extern "C" __global__ void multiply_ell(const int* ell_columns, const Value* ell_values, int rows, int longest,
                                        const Value* x, int width, Value* out) {
  long long count = (long long)rows * width;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    // Threads side by side have rows side by side, which lie so in `ell_columns`.
    int row = (int)(i % rows);
    long long across = i / rows;
    Value sum = 0;
    for (int k = 0; k < longest; ++k) {
      int column = ell_columns[k * rows + row];
      if (column < 0) break;
      sum += ell_values[k * rows + row] * x[(long long)column * width + across];
    }
    out[row * (long long)width + across] = sum;
  }
}
