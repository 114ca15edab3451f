// Cell lists: the points of a box, ordered by the cell they lie in.
//
// A box is cut into equal cells along two or three axes. A point beside the box belongs to the
// nearest cell at its edge, so that no point is ever missed.

#include "cells.h"

extern "C" __global__ void cell_keys(const Real* points, int n, int axes, Cells cells, int* keys, int* order) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int key = 0;
    for (int axis = axes - 1; axis >= 0; --axis)
      key = key * cells.count[axis] + cells.along(axis, points[(long long)i * axes + axis]);
    keys[i] = key;
    order[i] = i;
  }
}

// The first place whose key is at least `cell`, if all before `at` are less: steps that double, then halves.
__device__ int place_of(int cell, const int* keys, int n, int at) {
  if (at == n || keys[at] >= cell) return at;
  int step = 1;
  while (step < n - at && keys[at + step] < cell) at += step, step *= 2;
  int low = at + 1, high = step < n - at ? at + step : n;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (keys[middle] < cell) low = middle + 1;
    else high = middle;
  }
  return low;
}

// `starts[c]` is where the points of cell c begin among the sorted ones, and `starts[c + 1]` where they end.
// Each thread has as many cells as the others, one behind the other, however the points are spread.
extern "C" __global__ void cell_starts(const int* keys, int n, int cells, int* starts) {
  int threads = gridDim.x * blockDim.x, each = cells / threads + 1;
  long long first = (long long)(blockIdx.x * blockDim.x + threadIdx.x) * each;
  int at = 0;
  for (long long cell = first; cell < first + each && cell <= cells; ++cell)
    starts[cell] = at = place_of((int)cell, keys, n, at);
}

// Counts the points within `radius` of each query; with `found` also writes them, from `offsets` on.
extern "C" __global__ void neighbours(const Real* points, const Real* queries, int m, int axes,
                                      double radius, Cells cells, const int* order,
                                      const int* starts, const long long* offsets,
                                      long long* counts, int* found) {
  for (int q = blockIdx.x * blockDim.x + threadIdx.x; q < m; q += gridDim.x * blockDim.x) {
    double at[3] = {0, 0, 0};
    int low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
    for (int axis = 0; axis < axes; ++axis) {
      at[axis] = queries[(long long)q * axes + axis];
      // A little wider than the radius: the ends are rounded, and no neighbour may be lost by that.
      double reach = radius + 4e-16 * (fabs(at[axis]) + radius);
      low[axis] = cells.along(axis, at[axis] - reach);
      high[axis] = cells.along(axis, at[axis] + reach);
    }
    long long count = 0;
    for (int z = low[2]; z <= high[2]; ++z)
      for (int y = low[1]; y <= high[1]; ++y) {
        int row = (z * cells.count[1] + y) * cells.count[0];
        // The cells of a row follow each other, and so do their points.
        for (int k = starts[row + low[0]]; k < starts[row + high[0] + 1]; ++k) {
          int i = order[k];
          double squared = 0;
          for (int axis = 0; axis < axes; ++axis) {
            double d = at[axis] - (double)points[(long long)i * axes + axis];
            squared += d * d;
          }
          if (squared <= radius * radius) {
            if (found != nullptr) found[offsets[q] + count] = i;
            ++count;
          }
        }
      }
    if (counts != nullptr) counts[q] = count;
  }
}
