// A box cut into cells, as a kernel gets it.
#pragma once

struct Cells {
  double lower[3];
  double size;
  int count[3];
  int axes;

  // The cell of a coordinate. It never falls as `x` grows; what is no number is in the first cell.
  __device__ int along(int axis, double x) const {
    double cell = floor((x - lower[axis]) / size);
    if (!(cell > 0)) return 0;
    return cell < count[axis] ? (int)cell : count[axis] - 1;
  }
};
