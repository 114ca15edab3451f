// Cloth: a grid of nodes under Verlet integration, and distances that are restored one colour at a time.
//
// Node (row, column) has number row * columns + column; y points up. Every node that moves has mass 1.

struct Vector {
  float x, y, z;
};

__device__ Vector node(const float* x, int i) { return {x[3 * i], x[3 * i + 1], x[3 * i + 2]}; }
__device__ Vector minus(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__device__ float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ Vector cross(Vector a, Vector b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// The next places: what was moved goes on, and is pulled by gravity and by the wind on its area.
extern "C" __global__ void move(const float* x, const float* before, const unsigned char* pinned,
                                int rows, int columns, float dt, float damping, float gravity,
                                float wind_x, float wind_y, float wind_z, float* next) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += gridDim.x * blockDim.x) {
    Vector at = node(x, i), was = node(before, i);
    Vector go = minus(at, was);
    if (pinned[i]) {
      next[3 * i] = at.x, next[3 * i + 1] = at.y, next[3 * i + 2] = at.z;
      continue;
    }
    int row = i / columns, column = i % columns;
    Vector across = minus(node(x, column + 1 < columns ? i + 1 : i), node(x, column > 0 ? i - 1 : i));
    Vector down = minus(node(x, row + 1 < rows ? i + columns : i), node(x, row > 0 ? i - columns : i));
    Vector normal = cross(across, down);
    float length = sqrtf(dot(normal, normal)) + 1e-12f;
    Vector air = {wind_x - go.x / dt, wind_y - go.y / dt, wind_z - go.z / dt};
    bool blows = wind_x != 0 || wind_y != 0 || wind_z != 0;
    float push = blows ? dot(air, normal) / length : 0.f;
    next[3 * i] = at.x + damping * go.x + dt * dt * push * normal.x / length;
    next[3 * i + 1] = at.y + damping * go.y + dt * dt * (push * normal.y / length - gravity);
    next[3 * i + 2] = at.z + damping * go.z + dt * dt * push * normal.z / length;
  }
}

// Restores the distances between nodes and those `dy` rows and `dx` columns on, of one colour: no two
// of these have a node in common.
extern "C" __global__ void relax(float* x, const unsigned char* pinned, int rows, int columns, int dy,
                                 int dx, int colour, float rest, float stiffness) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += gridDim.x * blockDim.x) {
    int row = i / columns, column = i % columns;
    int place = dy != 0 ? row / dy : column / dx;
    if (place % 2 != colour || row + dy >= rows || column + dx >= columns || column + dx < 0) continue;
    int j = i + dy * columns + dx;
    float share = (pinned[i] ? 0.f : 1.f) + (pinned[j] ? 0.f : 1.f);
    Vector apart = minus(node(x, j), node(x, i));
    float length = sqrtf(dot(apart, apart));
    if (share == 0 || length == 0) continue;
    float by = stiffness * (length - rest) / (length * share);
    if (!pinned[i]) x[3 * i] += by * apart.x, x[3 * i + 1] += by * apart.y, x[3 * i + 2] += by * apart.z;
    if (!pinned[j]) x[3 * j] -= by * apart.x, x[3 * j + 1] -= by * apart.y, x[3 * j + 2] -= by * apart.z;
  }
}

// Puts what is inside of a ball on its surface.
extern "C" __global__ void outside(float* x, const unsigned char* pinned, int count, float ball_x,
                                   float ball_y, float ball_z, float radius) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    Vector out = minus(node(x, i), {ball_x, ball_y, ball_z});
    float length = sqrtf(dot(out, out));
    if (pinned[i] || length >= radius || length == 0) continue;
    float by = radius / length;
    x[3 * i] = ball_x + by * out.x, x[3 * i + 1] = ball_y + by * out.y, x[3 * i + 2] = ball_z + by * out.z;
  }
}

// Nodes are found by cells of a cube that repeats itself in all directions: `count` of them along each axis.
// So a cloth that flies away is among as many cells as before. What is no place has the cell 0 along an axis.
__device__ bool is_place(float x, double size) { return fabs(x / size) < 1e9; }
__device__ int cell_of(float x, double size) { return is_place(x, size) ? (int)floor(x / size) : 0; }
__device__ int folded(int cell, int count) {
  int at = cell % count;
  return at < 0 ? at + count : at;
}
__device__ int key_of(int x, int y, int z, int count) {
  return (folded(z, count) * count + folded(y, count)) * count + folded(x, count);
}

// The cell of each node. Nodes that are nowhere meet nobody, and are spread over the cells.
extern "C" __global__ void node_keys(const float* x, int n, double size, int count, int* keys, int* order) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    Vector at = node(x, i);
    bool is_somewhere = is_place(at.x, size) && is_place(at.y, size) && is_place(at.z, size);
    int key = key_of(cell_of(at.x, size), cell_of(at.y, size), cell_of(at.z, size), count);
    keys[i] = is_somewhere ? key : i % (count * count * count);
    order[i] = i;
  }
}

// Pushes nodes apart that are closer than `thickness` and no neighbours in the grid. A cell is at least as
// large as that, and there are four along an axis at least, so none is looked at twice.
extern "C" __global__ void separate(const float* x, const unsigned char* pinned, int rows, int columns,
                                    float thickness, double size, int count, const int* order,
                                    const int* starts, float* next) {
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < rows * columns; k += gridDim.x * blockDim.x) {
    int i = order[k];
    Vector at = node(x, i), sum = {0, 0, 0};
    float coordinates[3] = {at.x, at.y, at.z};
    int low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = cell_of(coordinates[axis] - thickness, size);
      high[axis] = cell_of(coordinates[axis] + thickness, size);
    }
    for (int z = low[2]; z <= high[2]; ++z)
      for (int y = low[1]; y <= high[1]; ++y)
        for (int across = low[0]; across <= high[0]; ++across) {
          int key = key_of(across, y, z, count);
          for (int m = starts[key]; m < starts[key + 1]; ++m) {
            int j = order[m];
            if (abs(j / columns - i / columns) <= 1 && abs(j % columns - i % columns) <= 1) continue;
            Vector apart = minus(at, node(x, j));
            float length = sqrtf(dot(apart, apart));
            if (!(length < thickness) || length == 0) continue;
            float by = 0.25f * (thickness - length) / length;  // several may push: half of a half
            sum.x += by * apart.x, sum.y += by * apart.y, sum.z += by * apart.z;
          }
        }
    float moves = pinned[i] ? 0.f : 1.f;
    next[3 * i] = at.x + moves * sum.x;
    next[3 * i + 1] = at.y + moves * sum.y;
    next[3 * i + 2] = at.z + moves * sum.z;
  }
}

// A place on the picture, and how near it is: seen from the front, a little from above and the left.
__device__ Vector seen(Vector p, float width, int rows, int columns) {
  float turned_x = 0.9f * p.x - 0.436f * p.z, turned_z = 0.436f * p.x + 0.9f * p.z;
  float y = 0.95f * p.y - 0.312f * turned_z, near = 0.312f * p.y + 0.95f * turned_z;
  float scale = columns / width;
  return {columns * 0.5f + scale * turned_x, rows * 0.5f - scale * y, near};
}

// Each mesh of the grid writes its nearness and its light to the pixels that it covers; the nearest stays.
extern "C" __global__ void cover(const float* x, int rows, int columns, float width, int height_px,
                                 int width_px, unsigned long long* nearest) {
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < 2 * (rows - 1) * (columns - 1);
       k += gridDim.x * blockDim.x) {
    int mesh = k / 2, row = mesh / (columns - 1), column = mesh % (columns - 1);
    int corner = row * columns + column;
    Vector a = node(x, k % 2 ? corner + columns + 1 : corner);
    Vector b = node(x, corner + 1), c = node(x, corner + columns);
    Vector normal = cross(minus(b, a), minus(c, a));
    float length = sqrtf(dot(normal, normal)) + 1e-20f;
    Vector light = {0.37f, 0.56f, 0.74f};
    float bright = 0.25f + 0.75f * fabsf(dot(normal, light)) / length;
    unsigned int shade = (unsigned int)(255 * fminf(bright, 1.f));
    unsigned int square = (row / 4 + column / 4) % 2;
    Vector p = seen(a, width, height_px, width_px), q = seen(b, width, height_px, width_px);
    Vector r = seen(c, width, height_px, width_px);
    float area = (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x);
    if (area == 0) continue;
    int top = max(0, (int)floorf(fminf(p.y, fminf(q.y, r.y))));
    int bottom = min(height_px - 1, (int)ceilf(fmaxf(p.y, fmaxf(q.y, r.y))));
    int left = max(0, (int)floorf(fminf(p.x, fminf(q.x, r.x))));
    int right = min(width_px - 1, (int)ceilf(fmaxf(p.x, fmaxf(q.x, r.x))));
    for (int v = top; v <= bottom; ++v)
      for (int u = left; u <= right; ++u) {
        float px = u + 0.5f, py = v + 0.5f;
        float s = ((px - p.x) * (r.y - p.y) - (py - p.y) * (r.x - p.x)) / area;
        float t = ((q.x - p.x) * (py - p.y) - (q.y - p.y) * (px - p.x)) / area;
        if (s < 0 || t < 0 || s + t > 1) continue;
        float near = p.z + s * (q.z - p.z) + t * (r.z - p.z);
        // From -width to width as a whole number, above the colour.
        float depth = fminf(fmaxf(0.5f + 0.5f * near / width, 0.f), 1.f);
        unsigned long long key = (unsigned long long)(1 + (unsigned int)(depth * 8388607.f)) << 32;
        atomicMax(&nearest[v * width_px + u], key | (square << 8) | shade);
      }
  }
}

extern "C" __global__ void paint(const unsigned long long* nearest, int count, unsigned char* picture) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float bright = (nearest[i] & 255) / 255.f;
    bool is_light = (nearest[i] >> 8) & 1;
    picture[3 * i] = nearest[i] ? (unsigned char)((is_light ? 235 : 190) * bright) : 13;
    picture[3 * i + 1] = nearest[i] ? (unsigned char)((is_light ? 225 : 60) * bright) : 17;
    picture[3 * i + 2] = nearest[i] ? (unsigned char)((is_light ? 205 : 50) * bright) : 28;
  }
}
