// Filters over an image (height, width, channels). What lies beyond an edge is the image, mirrored there,
// with the pixel at the edge twice: SciPy's "reflect".

__device__ int mirrored(int i, int n) {
  int period = 2 * n;
  i = i % period;
  if (i < 0) i += period;
  return i < n ? i : period - 1 - i;
}

// Correlates with a kernel of rows x columns weights, of which the middle one lies on the pixel.
extern "C" __global__ void correlate(const float* image, int height, int width, int channels,
                                     const float* weights, int rows, int columns, float* out) {
  int count = height * width * channels;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int c = i % channels, x = i / channels % width, y = i / channels / width;
    float sum = 0;
    for (int dy = 0; dy < rows; ++dy) {
      int line = mirrored(y + dy - rows / 2, height) * width;
      for (int dx = 0; dx < columns; ++dx)
        sum += weights[dy * columns + dx] * image[(line + mirrored(x + dx - columns / 2, width)) * channels + c];
    }
    out[i] = sum;
  }
}

// How steep the image is: the length of Sobel's two gradients.
extern "C" __global__ void sobel(const float* image, int height, int width, int channels, float* out) {
  int count = height * width * channels;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int c = i % channels, x = i / channels % width, y = i / channels / width;
    float at[3][3];
    for (int dy = 0; dy < 3; ++dy)
      for (int dx = 0; dx < 3; ++dx)
        at[dy][dx] = image[(mirrored(y + dy - 1, height) * width + mirrored(x + dx - 1, width)) * channels + c];
    float gx = at[0][2] + 2 * at[1][2] + at[2][2] - at[0][0] - 2 * at[1][0] - at[2][0];
    float gy = at[2][0] + 2 * at[2][1] + at[2][2] - at[0][0] - 2 * at[0][1] - at[0][2];
    out[i] = sqrtf(gx * gx + gy * gy);
  }
}

// A mean over those around, by how near they are in place and in colour (Tomasi and Manduchi 1998).
extern "C" __global__ void bilateral(const float* image, int height, int width, int channels, int radius,
                                     float by_place, float by_value, float* out) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < height * width; i += gridDim.x * blockDim.x) {
    int x = i % width, y = i / width;
    float total = 0, sum[4] = {0, 0, 0, 0};
    for (int dy = -radius; dy <= radius; ++dy)
      for (int dx = -radius; dx <= radius; ++dx) {
        int at = (mirrored(y + dy, height) * width + mirrored(x + dx, width)) * channels;
        float differs = 0;
        for (int c = 0; c < channels; ++c) {
          float d = image[at + c] - image[i * channels + c];
          differs += d * d;
        }
        float weight = expf(-by_place * (dx * dx + dy * dy) - by_value * differs);
        total += weight;
        for (int c = 0; c < channels; ++c) sum[c] += weight * image[at + c];
      }
    for (int c = 0; c < channels; ++c) out[i * channels + c] = sum[c] / total;
  }
}

// Each value becomes the share of values that are in its bin or below, from 0 in the lowest that has any.
extern "C" __global__ void equalise(const float* image, int count, const long long* below, int bins,
                                    float low, float high, float* out) {
  int lowest = 0;
  while (lowest < bins - 1 && below[lowest] == 0) ++lowest;
  float first = below[lowest], span = below[bins - 1] - first;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float place = (image[i] - low) / (high - low) * bins;
    int bin = (int)fminf(fmaxf(place, 0.f), bins - 1.f);  // what is infinite has no whole number
    float share = span > 0 ? fmaxf(below[bin] - first, 0.f) / span : 0.f;
    out[i] = low + share * (high - low);
  }
}
