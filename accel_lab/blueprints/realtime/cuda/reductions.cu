// Many reductions of values in one pass, in float64. `Element` is what the values are.
//
// Value i of channel c lies at i * channels + c. Each channel is cut into parts, always in the same way,
// and the summaries of parts are merged in the same order: so the numbers are the same for any number of threads.

#include "summary.h"

typedef unsigned char Byte;

#define LANES 32   // so many parts lie between each other, so that threads side by side read side by side
#define FAN 64     // so many summaries are merged at a time

__device__ void add(double* sum, double* rest, double x) {
  double whole = *sum + x, added = whole - *sum;
  *rest += (*sum - (whole - added)) + (x - added);
  *sum = whole;
}

// What was rounded away from an infinite sum is no number.
__device__ double total(double sum, double rest) { return fabs(sum) <= LARGEST ? sum + rest : sum; }

__device__ Summary nothing() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1}; }

__device__ void take(Summary* s, double x, long long at) {
  if (x != x) {
    if (s->nan_at < 0) s->nan_at = at;
    ++s->nans;
    return;
  }
  ++s->count;
  add(&s->sum, &s->sum_rest, x);
  add(&s->absolute, &s->absolute_rest, fabs(x));
  add(&s->squares, &s->squares_rest, x * x);
  double apart = x - s->mean;  // Welford 1962
  s->mean += apart / s->count;
  s->spread += apart * (x - s->mean);
  if (s->low_at < 0 || x < s->low) s->low = x, s->low_at = at;
  if (s->high_at < 0 || x > s->high) s->high = x, s->high_at = at;
}

// Whether the second of two extremes counts: it is further out, or as far and before the first.
__device__ bool is_ahead(double one, long long one_at, double other, long long other_at, double way) {
  if (other_at < 0) return false;
  if (one_at < 0 || way * other > way * one) return true;
  return other == one && other_at < one_at;
}

__device__ void merge(Summary* a, const Summary& b) {
  if (b.nan_at >= 0 && (a->nan_at < 0 || b.nan_at < a->nan_at)) a->nan_at = b.nan_at;
  a->nans += b.nans;
  if (b.count == 0) return;
  double count = a->count + b.count, apart = b.mean - a->mean;  // Chan, Golub and LeVeque 1979
  a->spread += b.spread;
  // Of nothing the mean is 0, which is no distance from anything.
  if (a->count == 0) a->mean = b.mean;
  else {
    a->spread += apart * apart * (a->count * (b.count / count));
    a->mean += apart * (b.count / count);
  }
  a->count += b.count;
  add(&a->sum, &a->sum_rest, b.sum);
  add(&a->absolute, &a->absolute_rest, b.absolute);
  add(&a->squares, &a->squares_rest, b.squares);
  a->sum_rest += b.sum_rest;
  a->absolute_rest += b.absolute_rest;
  a->squares_rest += b.squares_rest;
  if (is_ahead(a->low, a->low_at, b.low, b.low_at, -1)) a->low = b.low, a->low_at = b.low_at;
  if (is_ahead(a->high, a->high_at, b.high, b.high_at, 1)) a->high = b.high, a->high_at = b.high_at;
}

// Summaries travel as a table of their numbers and one of their whole numbers, a column for each.
__device__ Summary load(const double* numbers, const long long* places, long long at, long long slots) {
  const double* n = numbers + at;
  const long long* p = places + at;
  return {n[0],         n[slots],     n[2 * slots], n[3 * slots], n[4 * slots],
          n[5 * slots], n[6 * slots], n[7 * slots], n[8 * slots], n[9 * slots],
          p[0],         p[slots],     p[2 * slots], p[3 * slots], p[4 * slots]};
}

__device__ void save(const Summary& s, double* numbers, long long* places, long long at, long long slots) {
  double n[10] = {s.sum,  s.sum_rest, s.absolute, s.absolute_rest, s.squares, s.squares_rest,
                  s.mean, s.spread,   s.low,      s.high};
  long long p[5] = {s.count, s.nans, s.low_at, s.high_at, s.nan_at};
  for (int k = 0; k < 10; ++k) numbers[k * slots + at] = n[k];
  for (int k = 0; k < 5; ++k) places[k * slots + at] = p[k];
}

// `parts` summaries of each channel, a multiple of LANES, each of at most `each` of its `n` values.
extern "C" __global__ void summarise(const Element* values, long long n, int channels, int parts, int each,
                                     double* numbers, long long* places) {
  long long slots = (long long)parts * channels;
  for (long long slot = blockIdx.x * blockDim.x + threadIdx.x; slot < slots; slot += gridDim.x * blockDim.x) {
    long long part = slot / channels, channel = slot % channels;
    long long first = part / LANES * LANES * each + part % LANES;
    Summary s = nothing();
    for (int k = 0; k < each; ++k) {
      long long i = first + (long long)k * LANES;
      if (i >= n) break;
      take(&s, (double)values[i * channels + channel], i);
    }
    save(s, numbers, places, slot, slots);
  }
}

extern "C" __global__ void merge_parts(const double* numbers, const long long* places, int parts, int channels,
                                       double* merged_numbers, long long* merged_places) {
  int merged = (parts + FAN - 1) / FAN;
  long long slots = (long long)merged * channels;
  for (long long slot = blockIdx.x * blockDim.x + threadIdx.x; slot < slots; slot += gridDim.x * blockDim.x) {
    long long first = slot / channels * FAN, channel = slot % channels;
    Summary s = nothing();
    for (long long part = first; part < first + FAN && part < parts; ++part)
      merge(&s, load(numbers, places, part * channels + channel, (long long)parts * channels));
    save(s, merged_numbers, merged_places, slot, slots);
  }
}

// Puts the summary of what comes `behind` so many values into the summary of these.
extern "C" __global__ void absorb(double* numbers, long long* places, const double* more_numbers,
                                  const long long* more_places, int channels, long long behind) {
  for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < channels; c += gridDim.x * blockDim.x) {
    Summary s = load(numbers, places, c, channels), more = load(more_numbers, more_places, c, channels);
    if (more.low_at >= 0) more.low_at += behind;
    if (more.high_at >= 0) more.high_at += behind;
    if (more.nan_at >= 0) more.nan_at += behind;
    merge(&s, more);
    save(s, numbers, places, c, channels);
  }
}

// What summaries say. Where there are values that are no numbers nothing else is told, unless they are skipped.
extern "C" __global__ void conclude(const double* numbers, const long long* places, int channels, int ddof,
                                    int skip_nan, double* told, long long* where) {
  for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < channels; c += gridDim.x * blockDim.x) {
    Summary s = load(numbers, places, c, channels);
    bool is_told = s.count > 0 && (skip_nan || s.nans == 0);
    double sum = total(s.sum, s.sum_rest), nan = not_a_number();
    double spread = s.count > ddof ? s.spread / (s.count - ddof) : nan;
    double n[NUMBERS];
    n[SUM] = sum;
    n[MEAN] = sum / s.count;
    n[VARIANCE] = spread;
    n[STD] = sqrt(spread);
    n[MIN] = s.low;
    n[MAX] = s.high;
    n[NORM1] = total(s.absolute, s.absolute_rest);
    n[NORM2] = sqrt(total(s.squares, s.squares_rest));
    n[NORM_MAX] = fmax(fabs(s.low), fabs(s.high));
    for (int k = 0; k < NUMBERS; ++k) told[k * channels + c] = is_told ? n[k] : nan;
    bool is_spoilt = s.nans > 0 && !skip_nan;
    where[COUNT * channels + c] = s.count;
    where[NANS * channels + c] = s.nans;
    where[ARGMIN * channels + c] = is_spoilt ? s.nan_at : s.low_at;
    where[ARGMAX * channels + c] = is_spoilt ? s.nan_at : s.high_at;
  }
}
