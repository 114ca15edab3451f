"""Philox4x32-10 and what is made of its words, in the order of `libraries.draw`.

The C++ is portable, so that a test can run it without a GPU. NVRTC joins a product and a sum, and
CuPy's -ftz=true flushes subnormal numbers even where they are compared; the instructions named
here do neither, as NumPy does neither.
"""

SOURCE = r"""
#ifndef __CUDACC__
#include <cmath>
#endif

namespace philox {

typedef unsigned long long u64;

// Plane 0 are the words in a row; no offset reaches the bits that tell another plane.
__device__ void block(u64 index, u64 seed, u64 stream, unsigned* c, unsigned plane = 0) {
  u64 within = stream << 16 | (index & 0xffff);
  unsigned c0 = (unsigned)(index >> 16), c1 = (unsigned)(index >> 48) | plane << 14;
  unsigned c2 = (unsigned)within, c3 = (unsigned)(within >> 32);
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    u64 left = (u64)c0 * 0xD2511F53u, right = (u64)c2 * 0xCD9E8D57u;
    c0 = (unsigned)(right >> 32) ^ c1 ^ k0;
    c2 = (unsigned)(left >> 32) ^ c3 ^ k1;
    c1 = (unsigned)right;
    c3 = (unsigned)left;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  c[0] = c0, c[1] = c1, c[2] = c2, c[3] = c3;
}

// Words offset to offset + 3; two blocks have to be made where they are not one.
__device__ void four(u64 seed, u64 stream, u64 offset, unsigned* w, unsigned plane = 0) {
  int skipped = (int)(offset & 3);
  block(offset >> 2, seed, stream, w, plane);
  if (skipped == 0) return;
  unsigned next[4];
  block((offset >> 2) + 1, seed, stream, next, plane);
  // No index but a constant: these arrays stay in registers.
  if (skipped & 1) {
    w[0] = w[1], w[1] = w[2], w[2] = w[3], w[3] = next[0];
    next[0] = next[1], next[1] = next[2];
  }
  if (skipped & 2) w[0] = w[2], w[1] = w[3], w[2] = next[0], w[3] = next[1];
}

__device__ u64 high(u64 a, u64 b) {
#ifdef __CUDACC__
  return __umul64hi(a, b);
#else
  return (u64)((unsigned __int128)a * b >> 64);
#endif
}

__device__ float times(float a, float b) {
#ifdef __CUDACC__
  float result;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a * b;
#endif
}

__device__ float plus(float a, float b) {
#ifdef __CUDACC__
  float result;
  asm("add.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a + b;
#endif
}

__device__ double times(double a, double b) {
#ifdef __CUDACC__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

__device__ double plus(double a, double b) {
#ifdef __CUDACC__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

__device__ float least(float a, float b) {
#ifdef __CUDACC__
  float result;
  asm("min.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a < b ? a : b;
#endif
}

__device__ double least(double a, double b) { return a < b ? a : b; }

__device__ unsigned word(u64 seed, u64 stream, u64 index) {
  unsigned w[4];
  block(index >> 2, seed, stream, w);
  unsigned low = index & 1 ? w[1] : w[0], high = index & 1 ? w[3] : w[2];
  return index & 2 ? high : low;
}

__device__ u64 pair(const unsigned* w) { return (u64)w[1] << 32 | w[0]; }

// floor(v span / 2**(32 W)) where v is a number of W words; a span of 0 is one of 2**64.
template <int W>
__device__ u64 chosen(const unsigned* w, u64 span) {
  if (W == 1) return w[0] * span >> 32;
  if (W == 2) return span ? high(pair(w), span) : pair(w);
  u64 rest = pair(w + 2) * span;
  return high(pair(w + 2), span) + (rest + high(pair(w), span) < rest);
}

// In (0, 1], as curand_uniform and curand_uniform_double.
__device__ void unit(const unsigned* w, float& u) {
  u = plus(times((float)w[0], 2.3283064365386963e-10f), 1.1641532182693481e-10f);
}

__device__ void unit(const unsigned* w, double& u) {
  u64 bits = w[0] ^ (u64)w[1] << 21;
  u = plus(times((double)bits, 1.1102230246251565e-16), 5.5511151231257827e-17);
}

template <class T>
__device__ T scaled(T u, T low, T span, T high) {
  return least(plus(times(u, span), low), high);
}

// Inside (0, 1), exactly: of one word, or of two.
__device__ double inside(unsigned w) { return ((double)w + 0.5) * 2.3283064365386963e-10; }

__device__ double inside(const unsigned* w) {
  return ((double)(pair(w) >> 12) + 0.5) * 2.220446049250313e-16;
}

// Box and Muller's pair of u and t.
__device__ void normals(float u, float t, float* z) {
  float radius = sqrtf(-2.0f * logf(u)), sine, cosine;
#ifdef __CUDACC__
  sincospif(2.0f * t, &sine, &cosine);
#else
  sine = (float)sin(6.283185307179586 * t), cosine = (float)cos(6.283185307179586 * t);
#endif
  z[0] = times(radius, sine), z[1] = times(radius, cosine);
}

__device__ void normals(double u, double t, double* z) {
  double radius = sqrt(-2.0 * log(u)), sine, cosine;
#ifdef __CUDACC__
  sincospi(2.0 * t, &sine, &cosine);
#else
  sine = sin(6.283185307179586 * t), cosine = cos(6.283185307179586 * t);
#endif
  z[0] = times(radius, sine), z[1] = times(radius, cosine);
}

}  // namespace philox
"""
