// What is known of many values, and the numbers that are told of it.
#pragma once

// In the order of `ReductionValues`: places first, as they are whole numbers.
enum { COUNT, NANS, ARGMIN, ARGMAX, PLACES };
enum { SUM, MEAN, VARIANCE, STD, MIN, MAX, NORM1, NORM2, NORM_MAX, NUMBERS };

#define LARGEST 1.7976931348623157e308

__device__ double not_a_number() {
  double zero = 0;
  return zero / zero;
}

// A sum is `sum` and `sum_rest`, which holds what the additions rounded away (Knuth's TwoSum).
struct Summary {
  double sum, sum_rest, absolute, absolute_rest, squares, squares_rest;
  double mean, spread;  // the sum of the squared distances from the mean
  double low, high;
  long long count, nans;             // of values that are numbers, and of the others
  long long low_at, high_at, nan_at;  // the first of each, or -1
};
