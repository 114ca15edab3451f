// Effects on frames that compute each value of its own: of one, two or three frames of one size.

// In the order of `WAYS`; `p` and `q` are the numbers of the effect.
enum { ADJUST, THRESHOLD, BLEND, ADD, MULTIPLY, SCREEN, LIGHTEN, DARKEN, DIFFERENCE, MASK, TRAIL };

extern "C" __global__ void combine(const float* a, const float* b, const float* c, long long count, int way,
                                   float p, float q, float* out) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float x = a[i], y = b ? b[i] : 0.f, z = c ? c[i] : 0.f;
    float found = 0;
    switch (way) {
      case ADJUST: found = p * x + q; break;
      case THRESHOLD: found = x >= p ? 1.f : 0.f; break;
      case BLEND: found = (1 - p) * x + p * y; break;
      case ADD: found = x + y; break;
      case MULTIPLY: found = x * y; break;
      case SCREEN: found = 1 - (1 - x) * (1 - y); break;
      case LIGHTEN: found = fmaxf(x, y); break;
      case DARKEN: found = fminf(x, y); break;
      case DIFFERENCE: found = fabsf(x - y); break;
      case MASK: found = (1 - z) * x + z * y; break;
      case TRAIL: found = fmaxf(x, p * y); break;
    }
    out[i] = found;
  }
}
