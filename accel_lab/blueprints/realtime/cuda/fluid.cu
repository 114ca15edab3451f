// An incompressible fluid on a staggered grid: cells of width 1, y downwards.
//
// `u` (height, width + 1) is the velocity along x through the left face of each cell, and `v`
// (height + 1, width) that along y through its upper face. Pressure and dye are the cells' own. The
// box has walls without friction; an open one has wind at the left and lets go at the right.

struct Box {
  int width, height, open;
  float wind;

  __device__ bool is_solid(const unsigned char* solid, int y, int x) const {
    return x < 0 || y < 0 || x >= width || y >= height || solid[y * width + x];
  }

  // Whether what flows through a face is computed, and not given.
  __device__ bool is_free_u(const unsigned char* solid, int y, int x) const {
    if (open && x == width) return !is_solid(solid, y, x - 1);
    return !is_solid(solid, y, x - 1) && !is_solid(solid, y, x);
  }

  __device__ bool is_free_v(const unsigned char* solid, int y, int x) const {
    return !is_solid(solid, y - 1, x) && !is_solid(solid, y, x);
  }

  // What flows through a face that is not free.
  __device__ float given_u(const unsigned char* solid, int y, int x) const {
    return open && x == 0 && !is_solid(solid, y, 0) ? wind : 0.f;
  }
};

// The value at row y and column x of a field, linear between them, of `stride` values each.
__device__ float between(const float* field, int rows, int columns, float y, float x, int stride = 1) {
  y = fminf(fmaxf(y, 0.f), rows - 1.f);
  x = fminf(fmaxf(x, 0.f), columns - 1.f);
  int top = min((int)y, max(rows - 2, 0)), left = min((int)x, max(columns - 2, 0));
  int bottom = min(top + 1, rows - 1), right = min(left + 1, columns - 1);
  float fy = y - top, fx = x - left;
  float above = field[(top * columns + left) * stride] * (1 - fx) + field[(top * columns + right) * stride] * fx;
  float below = field[(bottom * columns + left) * stride] * (1 - fx) + field[(bottom * columns + right) * stride] * fx;
  return above * (1 - fy) + below * fy;
}

__device__ float u_at(const float* u, Box box, float y, float x) {
  return between(u, box.height, box.width + 1, y - 0.5f, x);
}

__device__ float v_at(const float* v, Box box, float y, float x) {
  return between(v, box.height + 1, box.width, y, x - 0.5f);
}

// Where what is at a place now was `dt` ago: half of the way by the velocity here, all of it by the
// velocity there (midpoint rule).
__device__ void origin(const float* u, const float* v, Box box, float dt, float* y, float* x) {
  float half_y = *y - 0.5f * dt * v_at(v, box, *y, *x);
  float half_x = *x - 0.5f * dt * u_at(u, box, *y, *x);
  *y -= dt * v_at(v, box, half_y, half_x);
  *x -= dt * u_at(u, box, half_y, half_x);
}

// Carries velocity and dye along (semi-Lagrangian); the dye fades by a factor.
extern "C" __global__ void advect(const float* u, const float* v, const float* dye,
                                  const unsigned char* solid, Box box, float dt, float fade,
                                  float* to_u, float* to_v, float* to_dye) {
  int columns = box.width + 1, count = columns * (box.height + 1);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int row = i / columns, column = i % columns;
    if (row < box.height) {
      float y = row + 0.5f, x = column;
      origin(u, v, box, dt, &y, &x);
      bool is_free = box.is_free_u(solid, row, column);
      to_u[i] = is_free ? u_at(u, box, y, x) : box.given_u(solid, row, column);
    }
    if (column < box.width) {
      float y = row, x = column + 0.5f;
      origin(u, v, box, dt, &y, &x);
      to_v[row * box.width + column] = box.is_free_v(solid, row, column) ? v_at(v, box, y, x) : 0.f;
    }
    if (row < box.height && column < box.width) {
      float y = row + 0.5f, x = column + 0.5f;
      origin(u, v, box, dt, &y, &x);
      int cell = row * box.width + column;
      for (int c = 0; c < 3; ++c) {
        float found = between(dye + c, box.height, box.width, y - 0.5f, x - 0.5f, 3);
        to_dye[3 * cell + c] = solid[cell] ? 0.f : fade * found;
      }
    }
  }
}

// One explicit step of diffusion; `by_u` and `by_dye` are at most a quarter. Beyond an edge there is
// the same as at it.
extern "C" __global__ void diffuse(const float* u, const float* v, const float* dye,
                                   const unsigned char* solid, Box box, float by_u, float by_dye,
                                   float* to_u, float* to_v, float* to_dye) {
  int columns = box.width + 1, count = columns * (box.height + 1);
  int dy[4] = {-1, 1, 0, 0}, dx[4] = {0, 0, -1, 1};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int row = i / columns, column = i % columns;
    if (row < box.height) {
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        int y = row + dy[k], x = column + dx[k];
        if (y >= 0 && y < box.height && x >= 0 && x <= box.width) sum += u[y * columns + x] - u[i];
      }
      bool is_free = box.is_free_u(solid, row, column);
      to_u[i] = is_free ? u[i] + by_u * sum : box.given_u(solid, row, column);
    }
    if (column < box.width) {
      int at = row * box.width + column;
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        int y = row + dy[k], x = column + dx[k];
        if (y >= 0 && y <= box.height && x >= 0 && x < box.width) sum += v[y * box.width + x] - v[at];
      }
      to_v[at] = box.is_free_v(solid, row, column) ? v[at] + by_u * sum : 0.f;
    }
    if (row < box.height && column < box.width) {
      int at = row * box.width + column;
      for (int c = 0; c < 3; ++c) {
        float sum = 0;
        for (int k = 0; k < 4; ++k) {
          int y = row + dy[k], x = column + dx[k];
          if (!box.is_solid(solid, y, x)) sum += dye[3 * (y * box.width + x) + c] - dye[3 * at + c];
        }
        to_dye[3 * at + c] = solid[at] ? 0.f : dye[3 * at + c] + by_dye * sum;
      }
    }
  }
}

// How fast the fluid turns in a cell.
__device__ float turning(const float* u, const float* v, Box box, int y, int x) {
  float dv = v_at(v, box, y + 0.5f, x + 1.5f) - v_at(v, box, y + 0.5f, x - 0.5f);
  float du = u_at(u, box, y + 1.5f, x + 0.5f) - u_at(u, box, y - 0.5f, x + 0.5f);
  return 0.5f * (dv - du);
}

extern "C" __global__ void curl(const float* u, const float* v, Box box, float* curls) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < box.width * box.height;
       i += gridDim.x * blockDim.x)
    curls[i] = turning(u, v, box, i / box.width, i % box.width);
}

// What pushes eddies to turn faster, in one cell (vorticity confinement, Fedkiw, Stam and Jensen 2001).
__device__ void confinement(const float* curls, Box box, int y, int x, float* fy, float* fx) {
  int left = max(x - 1, 0), right = min(x + 1, box.width - 1);
  int above = max(y - 1, 0), below = min(y + 1, box.height - 1);
  float gx = 0.5f * (fabsf(curls[y * box.width + right]) - fabsf(curls[y * box.width + left]));
  float gy = 0.5f * (fabsf(curls[below * box.width + x]) - fabsf(curls[above * box.width + x]));
  float turn = curls[y * box.width + x] / (sqrtf(gx * gx + gy * gy) + 1e-5f);
  *fx = gy * turn;
  *fy = -gx * turn;
}

// Eddies are pushed by `eddies`, and dye rises by `lift`; both are times dt.
extern "C" __global__ void push(float* u, float* v, const float* dye, const float* curls,
                                const unsigned char* solid, Box box, float eddies, float lift) {
  int columns = box.width + 1, count = columns * (box.height + 1);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int row = i / columns, column = i % columns;
    float ay, ax, by, bx;
    if (row < box.height && column > 0 && column < box.width && box.is_free_u(solid, row, column)) {
      confinement(curls, box, row, column - 1, &ay, &ax);
      confinement(curls, box, row, column, &by, &bx);
      u[i] += 0.5f * eddies * (ax + bx);
    }
    if (column < box.width && row > 0 && row < box.height && box.is_free_v(solid, row, column)) {
      confinement(curls, box, row - 1, column, &ay, &ax);
      confinement(curls, box, row, column, &by, &bx);
      int at = row * box.width + column;
      float smoke = 0;
      for (int c = 0; c < 3; ++c) smoke += dye[3 * at + c] + dye[3 * (at - box.width) + c];
      v[at] += 0.5f * eddies * (ay + by) - lift * smoke / 6;
    }
  }
}

// Adds dye and velocity round a place, less and less with the distance.
extern "C" __global__ void splash(float* u, float* v, float* dye, const unsigned char* solid, Box box,
                                  float y, float x, float radius, float vy, float vx, float red,
                                  float green, float blue) {
  int columns = box.width + 1, count = columns * (box.height + 1);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int row = i / columns, column = i % columns;
    float dy = row - y, dx = column - x;
    float half_y = dy + 0.5f, half_x = dx + 0.5f;
    float scale = 1 / (radius * radius);
    if (row < box.height && box.is_free_u(solid, row, column))
      u[i] += vx * expf(-(half_y * half_y + dx * dx) * scale);
    if (column < box.width && box.is_free_v(solid, row, column))
      v[row * box.width + column] += vy * expf(-(dy * dy + half_x * half_x) * scale);
    if (row < box.height && column < box.width && !solid[row * box.width + column]) {
      float weight = expf(-(half_y * half_y + half_x * half_x) * scale);
      float* at = dye + 3 * (row * box.width + column);
      at[0] += weight * red;
      at[1] += weight * green;
      at[2] += weight * blue;
    }
  }
}

__device__ float outflow(const float* u, const float* v, Box box, int y, int x) {
  return u[y * (box.width + 1) + x + 1] - u[y * (box.width + 1) + x] + v[(y + 1) * box.width + x] -
         v[y * box.width + x];
}

extern "C" __global__ void divergence(const float* u, const float* v, const unsigned char* solid,
                                      Box box, float* divergences) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < box.width * box.height;
       i += gridDim.x * blockDim.x)
    divergences[i] = solid[i] ? 0.f : outflow(u, v, box, i / box.width, i % box.width);
}

// One colour of a red and black sweep of successive over-relaxation for lap(p) = divergence. A cell
// reads only cells of the other colour.
extern "C" __global__ void relax(float* p, const float* divergences, const unsigned char* solid, Box box,
                                 int colour, float omega) {
  int columns = (box.width + 1) / 2;
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < columns * box.height;
       k += gridDim.x * blockDim.x) {
    int y = k / columns, x = 2 * (k % columns) + (y + colour) % 2, i = y * box.width + x;
    if (x >= box.width || solid[i]) continue;
    float sum = 0;
    int count = 0;
    if (x > 0 && !solid[i - 1]) sum += p[i - 1], ++count;
    if (x + 1 < box.width) {
      if (!solid[i + 1]) sum += p[i + 1], ++count;
    } else if (box.open) {
      ++count;  // the pressure outside is 0
    }
    if (y > 0 && !solid[i - box.width]) sum += p[i - box.width], ++count;
    if (y + 1 < box.height && !solid[i + box.width]) sum += p[i + box.width], ++count;
    if (count > 0) p[i] += omega * ((sum - divergences[i]) / count - p[i]);
  }
}

// Takes the gradient of the pressure off the velocity.
extern "C" __global__ void project(float* u, float* v, const float* p, const unsigned char* solid,
                                   Box box) {
  int columns = box.width + 1, count = columns * (box.height + 1);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int row = i / columns, column = i % columns;
    if (row < box.height && box.is_free_u(solid, row, column)) {
      int at = row * box.width + column;
      u[i] -= (column < box.width ? p[at] : 0.f) - p[at - 1];
    }
    if (column < box.width && box.is_free_v(solid, row, column)) {
      int at = row * box.width + column;
      v[at] -= p[at] - p[at - box.width];
    }
  }
}

__device__ unsigned char byte(float value) {
  return (unsigned char)(255 * fminf(fmaxf(value, 0.f), 1.f) + 0.5f);
}

// `what`: 0 the dye, 1 speed, 2 pressure, 3 divergence, 4 vorticity; times `contrast`, and those with a
// sign are blue below and red above 0.
extern "C" __global__ void paint(const float* u, const float* v, const float* p, const float* dye,
                                 const unsigned char* solid, Box box, int what, float contrast,
                                 unsigned char* picture) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < box.width * box.height;
       i += gridDim.x * blockDim.x) {
    int y = i / box.width, x = i % box.width;
    float red, green, blue;
    if (solid[i]) {
      red = green = blue = 0.42f;
    } else if (what == 0) {
      red = 0.04f + contrast * dye[3 * i];
      green = 0.05f + contrast * dye[3 * i + 1];
      blue = 0.09f + contrast * dye[3 * i + 2];
    } else if (what == 1) {
      float along = u_at(u, box, y + 0.5f, x + 0.5f), down = v_at(v, box, y + 0.5f, x + 0.5f);
      float speed = contrast * sqrtf(along * along + down * down);
      red = 1.5f * speed - 0.3f;
      green = 0.05f + 0.8f * speed * speed;
      blue = 0.15f + fminf(2 * speed, 0.55f) - 0.5f * fmaxf(speed - 0.5f, 0.f);
    } else {
      float value = what == 2 ? p[i] : what == 3 ? outflow(u, v, box, y, x) : turning(u, v, box, y, x);
      value = fminf(fmaxf(contrast * value, -1.f), 1.f);
      red = value > 0 ? 0.96f : 0.96f + 0.83f * value;
      green = 0.96f - 0.75f * fabsf(value);
      blue = value < 0 ? 0.96f : 0.96f - 0.83f * value;
    }
    picture[3 * i] = byte(red);
    picture[3 * i + 1] = byte(green);
    picture[3 * i + 2] = byte(blue);
  }
}
