// The threads of a block as fibers: each runs until it waits, then the next one does.
#pragma once

namespace accel_lab_shim {

const int MAX_THREADS = 1024;
const size_t STACK_BYTES = 256 << 10;
const size_t GUARD_BYTES = 64 << 10;
const size_t SHARED_BYTES = 227 << 10;
const int TURNS = 64;  // of a block among others, if they wait for each other in no barrier

enum State { READY, AT_BARRIER, AT_GRID, IN_WARP, IN_TILE, MEETING, ENDED };

struct Fiber;
typedef unsigned long long (*Combine)(Fiber* lanes, unsigned arrived, int lane);

struct Fiber {
  State state;
  bool begun;                // there is a place in `resume` to go on from
  int predicate;             // of __syncthreads_count, _and and _or
  const char* doing;         // what it waits in
  unsigned mask;             // of the lanes it waits for
  unsigned long long value;  // what it brought to the warp
  unsigned long long result;
  int source;           // the lane whose value it wants
  int first, size;      // of the tile of several warps that it waits for
  const void* at;       // where it is in the source, or what it lends to its group
  Combine combine;      // what makes its result of the values of the warp
  jmp_buf resume;
  ucontext_t start;
};

static Fiber* fibers;     // of the block that runs
static Fiber* all;        // of every block that is there at once
static int prepared;      // how many of them have a stack
static int room;          // for how many there is memory
static int current, threads, barrier_count, barrier_size;
static bool fibrous;      // whether threads are fibers in this launch
static bool cooperative;  // whether all blocks are there at once
static unsigned atomics_in_a_row;
static jmp_buf scheduler;
static char* stacks;
static char failure[512];
static void (*body)();
alignas(1024) static unsigned char shared_memory[SHARED_BYTES];

// What `extern __shared__ T name[]` becomes.
struct SharedMemory {
  template <class T> operator T*() const { return reinterpret_cast<T*>(shared_memory); }
};
inline SharedMemory dynamic_shared() { return {}; }

inline uint3 index_of(int thread) {
  unsigned t = (unsigned)thread;
  return {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

__attribute__((noinline)) static void yield() {
  if (_setjmp(fibers[current].resume) == 0) _longjmp(scheduler, 1);
}

// End the launch; `failure` says why.
[[noreturn]] inline void stop() { _longjmp(scheduler, 2); }

static void live() {
  for (;;) {
    body();
    fibers[current].state = ENDED;
    yield();
  }
}

// Let other threads go on; a thread that spins must do so, because nobody takes the core from it.
inline void give_way() {
  if (fibrous) yield();
}

inline void after_atomic() {
  if (fibrous && ++atomics_in_a_row % 64 == 0) yield();
}

static void complete_warp(int warp);
static void complete_tiles();

// The static shared memory of a block. Where the blocks of a grid are there at once, a source's
// arrays are variables of the OS's thread, which lie together, and nothing else is one.
struct Shared {
  char* at;
  size_t size;
};
#ifdef ACCEL_LAB_GRID
static thread_local volatile char in_shared;
static int find_shared(dl_phdr_info* info, size_t, void* found) {
  const char* inside = (const char*)&in_shared;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    char* at = (char*)info->dlpi_tls_data;
    if (part.p_type != PT_TLS || !at || inside < at || inside >= at + part.p_memsz) continue;
    *(Shared*)found = {at, part.p_memsz};
    return 1;
  }
  return 0;
}
static Shared static_shared() {
  Shared found = {nullptr, 0};
  in_shared = 0;
  dl_iterate_phdr(find_shared, &found);
  return found;
}
#else
static Shared static_shared() { return {nullptr, 0}; }
#endif

// Run a thread until it waits; false if that ends the launch.
__attribute__((noinline)) static bool resume(int thread) {
  current = thread;
  threadIdx = index_of(thread);
  Fiber& fiber = fibers[thread];
  int why = _setjmp(scheduler);
  if (why != 0) return why == 1;
  if (fiber.begun) _longjmp(fiber.resume, 1);
  fiber.begun = true;
  setcontext(&fiber.start);
  return false;
}

static void give_back_stacks() {
  const size_t each = STACK_BYTES + GUARD_BYTES;
  if (stacks) munmap(stacks, each * (size_t)room);
  free(all);
  stacks = nullptr;
  all = nullptr;
  prepared = room = 0;
}

// Have memory for so many threads at once.
static bool prepare(int count) {
  const size_t each = STACK_BYTES + GUARD_BYTES;
  if (count > room) {
    give_back_stacks();
    int wanted = count < MAX_THREADS ? MAX_THREADS : count;
    all = (Fiber*)calloc((size_t)wanted, sizeof(Fiber));
    void* memory = mmap(nullptr, each * (size_t)wanted, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || !all) return false;
    stacks = (char*)memory;
    room = wanted;
  }
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = all[i];
    if (fiber.begun) continue;
    char* stack = stacks + each * (size_t)i + GUARD_BYTES;
    if (i >= prepared && mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) return false;
    if (i >= prepared) prepared = i + 1;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = stack;
    fiber.start.uc_stack.ss_size = STACK_BYTES;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, live, 0);
  }
  return true;
}

static void explain_deadlock() {
  int first = -1, second = -1;
  for (int i = 0; i < threads; ++i) {
    if (fibers[i].state == ENDED) continue;
    if (first < 0) first = i;
    else if (second < 0 && (fibers[i].doing != fibers[first].doing ||
                            fibers[i].mask != fibers[first].mask)) second = i;
  }
  size_t at = snprintf(failure, sizeof failure, "deadlock in block (%u, %u, %u):", blockIdx.x,
                       blockIdx.y, blockIdx.z);
  for (int i : {first, second}) {
    if (i < 0) continue;
    uint3 t = index_of(i);
    at += snprintf(failure + at, sizeof failure - at, "%s thread (%u, %u, %u) waits in %s",
                   i == first ? "" : ", and", t.x, t.y, t.z, fibers[i].doing);
    if (fibers[i].state == IN_WARP)
      at += snprintf(failure + at, sizeof failure - at, " for the lanes 0x%08x", fibers[i].mask);
  }
  snprintf(failure + at, sizeof failure - at, "; the threads that they wait for do not come");
}

// Let the lanes of each warp go on that wait for those which take the same way, by where they are.
// Others that can go on may come there, too; `now` is when they have had the time for it.
static bool converge(bool now) {
  bool moved = false;
  for (int first = 0; first < threads; first += 32) {
    Fiber* lanes = fibers + first;
    int size = threads - first < 32 ? threads - first : 32;
    bool busy = false;
    for (int i = 0; i < size && !now; ++i) busy = busy || lanes[i].state == READY;
    for (int i = 0; i < size && !busy; ++i) {
      if (lanes[i].state != MEETING) continue;
      unsigned mask = 0;
      for (int j = i; j < size; ++j)
        mask |= (unsigned)(lanes[j].state == MEETING && lanes[j].at == lanes[i].at) << j;
      for (int j = i; j < size; ++j) {
        if (!(mask >> j & 1)) continue;
        lanes[j].result = mask;
        lanes[j].state = READY;
        moved = true;
      }
      break;  // the others may meet these at the next place
    }
  }
  return moved;
}

enum Outcome { DONE, WAITS_FOR_GRID, GOES_ON, FAILED };

// Run one block until it is done, or waits for others; FAILED says why in `failure`.
static Outcome run_block() {
  for (int turn = 1; !cooperative || turn <= TURNS; ++turn) {
    int ended = 0, waiting = 0, at_grid = 0;
    bool moved = false;
    for (int i = 0; i < threads; ++i) {
      if (fibers[i].state == READY) {
        moved = true;
        if (!resume(i)) return FAILED;
        if (fibers[i].state == ENDED) complete_warp(i / 32), complete_tiles();
      }
    }
    for (int i = 0; i < threads; ++i) {
      ended += fibers[i].state == ENDED;
      waiting += fibers[i].state == AT_BARRIER;
      at_grid += fibers[i].state == AT_GRID;
    }
    if (ended == threads) return DONE;
    if (at_grid && at_grid + ended == threads) return WAITS_FOR_GRID;
    if (converge(turn % TURNS == 0)) continue;
    if (waiting && waiting + ended == threads) {
      barrier_count = 0;
      barrier_size = waiting;
      for (int i = 0; i < threads; ++i) {
        if (fibers[i].state != AT_BARRIER) continue;
        barrier_count += fibers[i].predicate;
        fibers[i].state = READY;
      }
    } else if (!moved) {
      explain_deadlock();
      return FAILED;
    }
  }
  return GOES_ON;
}

static void restart(int count) {
  for (int i = 0; i < count; ++i) all[i].begun = false;
}

static bool run_loop() {
  if (_setjmp(scheduler) != 0) return false;
  for (unsigned z = 0; z < blockDim.z; ++z)
    for (unsigned y = 0; y < blockDim.y; ++y)
      for (unsigned x = 0; x < blockDim.x; ++x) {
        threadIdx = {x, y, z};
        body();
      }
  return true;
}

// What printf has printed in the last launch; it is no process's standard output.
struct Printed {
  char* text = nullptr;
  size_t size = 0;
  FILE* before = nullptr;
  void begin() {
    free(text);
    text = nullptr;
    before = stdout;
    if (FILE* memory = open_memstream(&text, &size)) stdout = memory;
  }
  void end() {
    if (stdout != before) fclose(stdout);
    stdout = before;
  }
  ~Printed() { free(text); }
};
static Printed printed;

static const char* accel_lab_what_was_printed() { return printed.size ? printed.text : nullptr; }

inline uint3 block_at(unsigned long long index) {
  return {(unsigned)(index % gridDim.x), (unsigned)(index / gridDim.x % gridDim.y),
          (unsigned)(index / gridDim.x / gridDim.y)};
}

// Run the blocks one after another.
static bool run_each() {
  unsigned long long blocks = (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
  for (unsigned long long i = 0; i < blocks; ++i) {
    blockIdx = block_at(i);
    if (!fibrous) {
      fibers[0].state = READY;
      if (!run_loop()) return false;
      continue;
    }
    for (int j = 0; j < threads; ++j) fibers[j].state = READY;
    if (run_block() != DONE) {
      restart(threads);
      return false;
    }
  }
  return true;
}

// Run the blocks in turns, each with its own shared memory where the others had theirs.
static bool run_together(int blocks, size_t dynamic_bytes) {
  Shared own = static_shared();
  const size_t each = own.size + dynamic_bytes;
  char* kept = (char*)calloc((size_t)blocks, each ? each : 1);
  int* outcomes = (int*)calloc((size_t)blocks, sizeof(int));
  bool good = kept && outcomes;
  if (!good) snprintf(failure, sizeof failure, "there is no memory for the blocks of the grid");
  for (int i = 0; i < blocks * threads; ++i) all[i].state = READY;
  for (int i = 0; good && i < blocks; ++i) outcomes[i] = GOES_ON;
  for (int left = blocks; good && left > 0;) {
    int waiting = 0;
    for (int i = 0; good && i < blocks; ++i) {
      if (outcomes[i] == GOES_ON) {
        char* mine = kept + each * (size_t)i;
        blockIdx = block_at((unsigned long long)i);
        fibers = all + i * threads;
        memcpy(own.at, mine, own.size);
        memcpy(shared_memory, mine + own.size, dynamic_bytes);
        outcomes[i] = run_block();
        memcpy(mine, own.at, own.size);
        memcpy(mine + own.size, shared_memory, dynamic_bytes);
        good = outcomes[i] != FAILED;
        left -= outcomes[i] == DONE;
      }
      waiting += outcomes[i] == WAITS_FOR_GRID;
    }
    if (!good || waiting < left) continue;
    for (int i = 0; i < blocks * threads; ++i)
      if (all[i].state == AT_GRID) all[i].state = READY;
    for (int i = 0; i < blocks; ++i)
      if (outcomes[i] == WAITS_FOR_GRID) outcomes[i] = GOES_ON;
  }
  fibers = all;
  if (!good) restart(blocks * threads);
  free(kept);
  free(outcomes);
  return good;
}

// Run a grid; nullptr, or why it could not end.
static const char* accel_lab_run_grid(dim3 grid, dim3 block, bool as_fibers, bool together,
                                      size_t dynamic_bytes, void (*kernel)()) {
  gridDim = grid;
  blockDim = block;
  body = kernel;
  threads = (int)(block.x * block.y * block.z);
  current = 0;
  cooperative = together;
  fibrous = together || (as_fibers && threads > 1);
  int blocks = together ? (int)(grid.x * grid.y * grid.z) : 1;
  if (!prepare(fibrous ? blocks * threads : 1)) {
    give_back_stacks();
    return "there is no memory for the stacks of its threads";
  }
  fibers = all;
  printed.begin();
  bool done = together ? run_together(blocks, dynamic_bytes) : run_each();
  printed.end();
  return done ? nullptr : failure;
}

struct Stacks {
  ~Stacks() { give_back_stacks(); }
};
static Stacks at_unload;

}  // namespace accel_lab_shim
