// The threads of a block as fibers: each runs until it waits, then the next one does.
#pragma once

namespace accel_lab_shim {

const int MAX_THREADS = 1024;
const size_t STACK_BYTES = 256 << 10;
const size_t GUARD_BYTES = 64 << 10;
const size_t SHARED_BYTES = 227 << 10;

enum State { READY, AT_BARRIER, IN_WARP, ENDED };

struct Fiber {
  State state;
  bool begun;                // there is a place in `resume` to go on from
  int predicate;             // of __syncthreads_count, _and and _or
  const char* doing;         // what it waits in
  unsigned mask;             // of the lanes it waits for
  unsigned long long value;  // what it brought to the warp
  unsigned long long result;
  int source;  // the lane whose value it wants
  jmp_buf resume;
  ucontext_t start;
};

static Fiber fibers[MAX_THREADS];
static int current, threads, barrier_count, barrier_size;
static bool fibrous;  // whether threads are fibers in this launch
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

__attribute__((noinline)) static void resume(int thread) {
  current = thread;
  threadIdx = index_of(thread);
  Fiber& fiber = fibers[thread];
  if (_setjmp(scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.resume, 1);
  fiber.begun = true;
  setcontext(&fiber.start);
}

static bool prepare(int count) {
  const size_t each = STACK_BYTES + GUARD_BYTES;
  if (!stacks) {
    void* memory = mmap(nullptr, each * MAX_THREADS, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    stacks = (char*)memory;
  }
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = fibers[i];
    if (fiber.begun) continue;
    char* stack = stacks + each * i + GUARD_BYTES;
    if (mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) return false;
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

// Run one block; false when its threads wait for each other for ever.
static bool run_block() {
  for (int i = 0; i < threads; ++i) fibers[i].state = READY;
  for (;;) {
    int ended = 0, waiting = 0;
    bool moved = false;
    for (int i = 0; i < threads; ++i) {
      if (fibers[i].state == READY) {
        moved = true;
        resume(i);
        if (fibers[i].state == ENDED) complete_warp(i / 32);
      }
    }
    for (int i = 0; i < threads; ++i) {
      ended += fibers[i].state == ENDED;
      waiting += fibers[i].state == AT_BARRIER;
    }
    if (ended == threads) return true;
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
      for (int i = 0; i < threads; ++i) fibers[i].begun = false;
      return false;
    }
  }
}

static void run_loop() {
  for (unsigned z = 0; z < blockDim.z; ++z)
    for (unsigned y = 0; y < blockDim.y; ++y)
      for (unsigned x = 0; x < blockDim.x; ++x) {
        threadIdx = {x, y, z};
        body();
      }
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

// Run a grid; nullptr, or why it could not end.
static const char* accel_lab_run_grid(dim3 grid, dim3 block, bool as_fibers, void (*kernel)()) {
  gridDim = grid;
  blockDim = block;
  body = kernel;
  threads = (int)(block.x * block.y * block.z);
  current = 0;
  fibrous = as_fibers && threads > 1;
  if (fibrous && !prepare(threads)) return "there is no memory for the stacks of a block";
  bool done = true;
  printed.begin();
  for (unsigned z = 0; done && z < grid.z; ++z)
    for (unsigned y = 0; done && y < grid.y; ++y)
      for (unsigned x = 0; done && x < grid.x; ++x) {
        blockIdx = {x, y, z};
        if (fibrous) done = run_block();
        else run_loop();
      }
  printed.end();
  return done ? nullptr : failure;
}

struct Stacks {
  ~Stacks() {
    if (stacks) munmap(stacks, (STACK_BYTES + GUARD_BYTES) * MAX_THREADS);
  }
};
static Stacks at_unload;

}  // namespace accel_lab_shim
