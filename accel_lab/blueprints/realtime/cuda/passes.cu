// Passes over one vector of values, `Element` each: NaN is left out, and everything is computed in float64.
//
// `numbers` and `places` are what reductions.cu tells of the values.

#include "summary.h"

// Edges of bins of one width: between `low` and `high` if they are given, else between the extremes. As
// numpy.histogram_bin_edges: of one value they are half a unit on either side, and of none from 0 to 1.
extern "C" __global__ void bin_edges(const double* numbers, const long long* places, int is_given, double low,
                                     double high, int bins, double* edges) {
  if (!is_given) {
    low = places[COUNT] ? numbers[MIN] : 0;
    high = places[COUNT] ? numbers[MAX] : 1;
    if (low == high) low -= 0.5, high += 0.5;
  }
  double step = (high - low) / bins;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i <= bins; i += gridDim.x * blockDim.x)
    edges[i] = i == bins ? high : low + i * step;
}

// The last bin has its upper edge. The edges decide, and not the rounded place.
extern "C" __global__ void count_bins(const Element* values, long long n, const double* edges, int bins,
                                      long long* counts) {
  double low = edges[0], high = edges[bins];
  if (!(high - low <= LARGEST)) return;  // between infinities there are no bins
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double x = values[i];
    if (!(x >= low && x <= high)) continue;
    int bin = (int)((x - low) / (high - low) * bins);
    if (bin >= bins) bin = bins - 1;
    if (bin > 0 && x < edges[bin]) --bin;
    if (bin < bins - 1 && x >= edges[bin + 1]) ++bin;
    atomicAdd((unsigned long long*)&counts[bin], 1ull);
  }
}

// Quantiles between two of the sorted values, as numpy.quantile's method "linear"; NaN lie at the end.
extern "C" __global__ void quantiles(const Element* sorted, const long long* places, const double* at, int n,
                                     double* found) {
  long long last = places[COUNT] - 1;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double place = at[i] * last, whole = floor(place), part = place - whole;
    if (last < 0) {
      found[i] = not_a_number();
      continue;
    }
    double a = sorted[(long long)whole], b = sorted[(long long)whole < last ? (long long)whole + 1 : last];
    found[i] = a == b ? a : part < 0.5 ? a + (b - a) * part : b - (b - a) * (1 - part);
  }
}

// Between which values lies what is no outlier: by the mean and the standard deviation, or by the quartiles.
extern "C" __global__ void set_fences(const double* numbers, const double* quartiles, double beyond, double* fences) {
  if (blockIdx.x * blockDim.x + threadIdx.x > 0) return;
  double low = quartiles ? quartiles[0] : numbers[MEAN], high = quartiles ? quartiles[1] : numbers[MEAN];
  double reach = beyond * (quartiles ? high - low : numbers[STD]);
  fences[0] = low - reach;
  fences[1] = high + reach;
}

// What to do with outliers: 0 nothing, 1 put them at the fence, 2 take them out, so that they are NaN.
extern "C" __global__ void fence_in(const Element* values, long long n, const double* fences, int then,
                                    unsigned char* is_outside, Element* out) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double x = values[i];
    bool below = x < fences[0], above = x > fences[1];
    is_outside[i] = below || above;
    Element fence = (Element)(below ? fences[0] : fences[1]);
    out[i] = !(below || above) || then == 0 ? values[i] : then == 1 ? fence : (Element)not_a_number();
  }
}

// Moves and scales: the mean to 0 and the standard deviation to 1, or what there is to [0, 1]. Where all are equal, to 0.
extern "C" __global__ void normalise(const Element* values, long long n, const double* numbers, int by_range,
                                     Element* out) {
  double from = by_range ? numbers[MIN] : numbers[MEAN];
  double unit = by_range ? numbers[MAX] - numbers[MIN] : numbers[STD];
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double x = values[i];
    out[i] = (Element)(x == x && unit == 0 ? 0 : (x - from) / unit);
  }
}
