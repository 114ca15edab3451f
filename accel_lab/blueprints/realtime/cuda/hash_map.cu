// A hash map with open addressing: a key lies in the first free slot from its own on (linear probing).
//
// A slot of keys goes from EMPTY to a key, and from that to ERASED, and never back: so threads that
// look for one key at the same time find it in one slot, and nothing has to be locked. `Value` is
// what the map holds. The number of slots is a power of two, and some are always empty.

#define EMPTY 0x8000000000000000ull
#define ERASED 0x8000000000000001ull
typedef unsigned long long Bits;
typedef long long Long;

// A table travels as int64, as its keys do; here it is bits.
__device__ Bits* bits(long long* table) { return (Bits*)table; }
__device__ const Bits* bits(const long long* table) { return (const Bits*)table; }

__device__ int first_slot(Bits key, int mask) {
  key ^= key >> 33;  // the end of MurmurHash3
  key *= 0xff51afd7ed558ccdull;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ull;
  key ^= key >> 33;
  return (int)(key & (Bits)mask);
}

__device__ int slot_of(const Bits* table, Bits key, int mask) {
  for (int slot = first_slot(key, mask);; slot = (slot + 1) & mask) {
    if (table[slot] == key) return slot;
    if (table[slot] == EMPTY) return -1;
  }
}

// Finds or takes a slot for each key. Of equal keys the last one in the batch owns it. `tally[0]` counts
// the slots that are taken. Keys EMPTY and ERASED, as another table has them, are passed over.
extern "C" __global__ void claim(const long long* keys, int n, long long* table, int* owners, int mask,
                                 int* slots, int* tally) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    Bits key = (Bits)keys[i];
    slots[i] = -1;
    if (key == EMPTY || key == ERASED) continue;
    for (int slot = first_slot(key, mask);; slot = (slot + 1) & mask) {
      Bits there = bits(table)[slot];
      if (there == EMPTY) {
        there = atomicCAS(&bits(table)[slot], EMPTY, key);
        if (there == EMPTY) {
          atomicAdd(&tally[0], 1);
          there = key;
        }
      }
      if (there == key) {
        slots[i] = slot;
        atomicMax(&owners[slot], i + 1);
        break;
      }
    }
  }
}

extern "C" __global__ void store(const Value* values, int n, const int* slots, const int* owners,
                                 Value* table_values) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (slots[i] >= 0 && owners[slots[i]] == i + 1) table_values[slots[i]] = values[i];
}

extern "C" __global__ void find(const long long* keys, int n, const long long* table,
                                const Value* table_values, int mask, Value* values,
                                unsigned char* found) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    Bits key = (Bits)keys[i];
    int slot = key == EMPTY || key == ERASED ? -1 : slot_of(bits(table), key, mask);
    found[i] = slot >= 0;
    values[i] = slot >= 0 ? table_values[slot] : (Value)0;
  }
}

// `tally[1]` counts the keys that were there.
extern "C" __global__ void erase(const long long* keys, int n, long long* table, int mask, int* tally) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    Bits key = (Bits)keys[i];
    int slot = key == EMPTY || key == ERASED ? -1 : slot_of(bits(table), key, mask);
    if (slot >= 0 && atomicCAS(&bits(table)[slot], key, ERASED) == key) atomicAdd(&tally[1], 1);
  }
}

extern "C" __global__ void occupied(const long long* table, int capacity, unsigned char* is_there) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < capacity; i += gridDim.x * blockDim.x)
    is_there[i] = bits(table)[i] != EMPTY && bits(table)[i] != ERASED;
}
