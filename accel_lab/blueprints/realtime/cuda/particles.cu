// Discs in a box: springs where they overlap, gravity, drag, walls that throw back.
//
// A step is velocity Verlet: half a kick, a drift, the forces at the new places, half a kick.

#include "cells.h"

// v += a dt / 2, damped by the drag; then x += v dt, and back from the walls.
extern "C" __global__ void drift(float* x, float* v, const float* a, int n, float radius,
                                 float width, float height, float dt, float damping, float bounce) {
  float high[2] = {width - radius, height - radius};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 2 * n; i += gridDim.x * blockDim.x) {
    float speed = (v[i] + 0.5f * dt * a[i]) * damping;
    float at = x[i] + dt * speed;
    float end = high[i % 2];
    if (at < radius) {
      at = 2 * radius - at;
      speed = -bounce * speed;
    } else if (at > end) {
      at = 2 * end - at;
      speed = -bounce * speed;
    }
    // One that is faster than the box is wide in a step stops at the wall.
    x[i] = fminf(fmaxf(at, radius), end);
    v[i] = speed;
  }
}

// The acceleration of each disc by gravity and by those that it overlaps. Both of a pair compute the
// same numbers with the other sign.
extern "C" __global__ void forces(const float* x, const float* v, int n, float radius,
                                  float stiffness, float friction, float gravity_x,
                                  float gravity_y, Cells cells, const int* order,
                                  const int* starts, float* a) {
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
    int i = order[k];
    float px = x[2 * i], py = x[2 * i + 1];
    float ax = 0, ay = 0;
    int low = cells.along(0, px - 2 * radius), high = cells.along(0, px + 2 * radius);
    for (int row = cells.along(1, py - 2 * radius); row <= cells.along(1, py + 2 * radius); ++row) {
      int first = row * cells.count[0];
      for (int m = starts[first + low]; m < starts[first + high + 1]; ++m) {
        int j = order[m];
        float dx = px - x[2 * j], dy = py - x[2 * j + 1];
        float squared = dx * dx + dy * dy;
        if (j == i || squared >= 4 * radius * radius || squared == 0) continue;
        float distance = sqrtf(squared);
        float nx = dx / distance, ny = dy / distance;
        float closing = (v[2 * i] - v[2 * j]) * nx + (v[2 * i + 1] - v[2 * j + 1]) * ny;
        float push = stiffness * (2 * radius - distance) - friction * closing;
        ax += push * nx;
        ay += push * ny;
      }
    }
    a[2 * i] = ax + gravity_x;
    a[2 * i + 1] = ay + gravity_y;
  }
}

extern "C" __global__ void kick(float* v, const float* a, int n, float dt, float damping) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 2 * n; i += gridDim.x * blockDim.x)
    v[i] = v[i] * damping + 0.5f * dt * a[i];
}

// What springs and gravity hold, and the kinetic energy, of each disc; the mass is 1.
extern "C" __global__ void energies(const float* x, const float* v, int n, float radius,
                                    float stiffness, float gravity_x, float gravity_y, Cells cells,
                                    const int* order, const int* starts, double* kinetic,
                                    double* potential) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float px = x[2 * i], py = x[2 * i + 1];
    double springs = 0;
    int low = cells.along(0, px - 2 * radius), high = cells.along(0, px + 2 * radius);
    for (int row = cells.along(1, py - 2 * radius); row <= cells.along(1, py + 2 * radius); ++row) {
      int first = row * cells.count[0];
      for (int m = starts[first + low]; m < starts[first + high + 1]; ++m) {
        int j = order[m];
        double dx = (double)px - x[2 * j], dy = (double)py - x[2 * j + 1];
        double overlap = 2.0 * radius - sqrt(dx * dx + dy * dy);
        if (j != i && overlap > 0) springs += 0.25 * stiffness * overlap * overlap;  // half of a pair
      }
    }
    potential[i] = springs - (double)gravity_x * px - (double)gravity_y * py;
    kinetic[i] = 0.5 * ((double)v[2 * i] * v[2 * i] + (double)v[2 * i + 1] * v[2 * i + 1]);
  }
}

// Each pixel looks which disc covers it, and how fast that is: blue at rest, over white to red.
extern "C" __global__ void paint(const float* x, const float* v, float radius, float width,
                                 float height, float fast, Cells cells, const int* order,
                                 const int* starts, unsigned char* picture, int rows, int columns) {
  float wide = width / columns, high = height / rows;
  float reach = fmaxf(radius, 0.5f * fmaxf(wide, high));  // none falls between the pixels
  for (int pixel = blockIdx.x * blockDim.x + threadIdx.x; pixel < rows * columns;
       pixel += gridDim.x * blockDim.x) {
    float px = (pixel % columns + 0.5f) * wide;
    float py = (rows - pixel / columns - 0.5f) * high;  // up is up
    float nearest = reach * reach;
    int found = -1;
    int low = cells.along(0, px - reach), end = cells.along(0, px + reach);
    for (int row = cells.along(1, py - reach); row <= cells.along(1, py + reach); ++row) {
      int first = row * cells.count[0];
      for (int m = starts[first + low]; m < starts[first + end + 1]; ++m) {
        int j = order[m];
        float dx = px - x[2 * j], dy = py - x[2 * j + 1];
        float squared = dx * dx + dy * dy;
        if (squared < nearest || (found < 0 && squared <= nearest)) {
          nearest = squared;
          found = j;
        }
      }
    }
    float red = 13, green = 17, blue = 28;
    if (found >= 0) {
      float speed = sqrtf(v[2 * found] * v[2 * found] + v[2 * found + 1] * v[2 * found + 1]);
      float t = fminf(speed / fast, 1.f);
      float shade = 1 - 0.45f * nearest / (reach * reach);  // darker at the rim
      red = shade * (t < 0.5f ? 70 + 370 * t : 255);
      green = shade * (t < 0.5f ? 130 + 200 * t : 330 - 200 * t);
      blue = shade * (t < 0.5f ? 240 - 60 * t : 330 - 240 * t);
    }
    picture[3 * pixel] = (unsigned char)fminf(fmaxf(red, 0.f), 255.f);
    picture[3 * pixel + 1] = (unsigned char)fminf(fmaxf(green, 0.f), 255.f);
    picture[3 * pixel + 2] = (unsigned char)fminf(fmaxf(blue, 0.f), 255.f);
  }
}
