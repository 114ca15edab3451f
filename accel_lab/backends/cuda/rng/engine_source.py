"""The source of kernels of other generators, of points, and of what is chosen by weights.

The C++ is portable, as that of `philox` is. One kernel each; its elements are in a row.
"""

from accel_lab.backends.cuda.device.narrow_floats import SOURCE as ROUNDING
from accel_lab.backends.cuda.rng.philox import SOURCE as PHILOX
from accel_lab.backends.cuda.rng.sampling import GRID
from accel_lab.libraries.rng.engines import A12, A13, A21, A23, LEAP, M1, M2, TO_WORD, WEYL

ELEMENTS = {"uint32": "unsigned", "uint64": "u64", "float32": "float", "float64": "double"}
POWERS = 32
"""How many leaps ahead a thread may begin, as a power of two."""

_ELEMENT = """
typedef {element} Element;

__device__ void made(const unsigned* w, unsigned& e) {{ e = w[0]; }}
__device__ void made(const unsigned* w, u64& e) {{ e = philox::pair(w); }}
__device__ void made(const unsigned* w, float& e) {{ philox::unit(w, e); }}
__device__ void made(const unsigned* w, double& e) {{ philox::unit(w, e); }}
"""
_LEAPT = """
{engine}

extern "C" __global__ void accel_lab_leapt(
    Element* out, long long n, const unsigned* table, unsigned s0, unsigned s1, unsigned s2,
    unsigned s3, unsigned s4, unsigned s5) {{
  const int each = sizeof(Element) / 4, row = {leap} / each;
  for (long long leap = FIRST; leap * row < n; leap += STEP) {{
    unsigned s[6] = {{s0, s1, s2, s3, s4, s5}};
    for (int power = 0; power < {powers} && leap >> power; ++power)
      if (leap >> power & 1) apply(table + power * IMAGES, s);
    for (int at = 0; at < row && leap * row + at < n; ++at) {{
      unsigned w[2];
      for (int word = 0; word < each; ++word) w[word] = step(s);
      made(w, out[leap * row + at]);
    }}
  }}
}}
"""
_ENGINES = {
    "xorwow": f"""
#define IMAGES (161 * 6)

__device__ unsigned step(unsigned* s) {{
  unsigned t = s[0] ^ s[0] >> 2;
  s[0] = s[1], s[1] = s[2], s[2] = s[3], s[3] = s[4];
  s[4] = s[4] ^ s[4] << 4 ^ t ^ t << 1;
  s[5] += {WEYL}u;
  return s[5] + s[4];
}}

__device__ void apply(const unsigned* images, unsigned* s) {{
  unsigned after[5] = {{0, 0, 0, 0, 0}};
  for (int word = 0; word < 5; ++word)
    for (int bit = 0; bit < 32; ++bit)
      if (s[word] >> bit & 1)
        for (int at = 0; at < 5; ++at) after[at] ^= images[(32 * word + bit) * 6 + at];
  for (int at = 0; at < 5; ++at) s[at] = after[at];
  s[5] += images[160 * 6 + 5];
}}
""",
    "mrg32k3a": f"""
#define IMAGES (6 * 6)

__device__ unsigned step(unsigned* s) {{
  u64 p = ({A12}ull * s[1] % {M1}u + {A13}ull * s[0] % {M1}u) % {M1}u;
  u64 q = ({A21}ull * s[5] % {M2}u + {A23}ull * s[3] % {M2}u) % {M2}u;
  s[0] = s[1], s[1] = s[2], s[2] = (unsigned)p;
  s[3] = s[4], s[4] = s[5], s[5] = (unsigned)q;
  u64 z = p <= q ? p + {M1}u - q : p - q;
  return (unsigned)((double)z * {TO_WORD!r});
}}

__device__ void apply(const unsigned* images, unsigned* s) {{
  u64 after[6] = {{0, 0, 0, 0, 0, 0}};
  for (int half = 0; half < 6; half += 3) {{
    u64 prime = half ? {M2}u : {M1}u;
    for (int unit = half; unit < half + 3; ++unit)
      for (int at = half; at < half + 3; ++at)
        after[at] = (after[at] + (u64)s[unit] * images[unit * 6 + at] % prime) % prime;
  }}
  for (int at = 0; at < 6; ++at) s[at] = (unsigned)after[at];
}}
""",
}
# Words of a part of the state depend on none of that part, so its threads need not wait.
_TWISTED = """
#ifdef __CUDACC__
#define SHARED __shared__
#define WAIT __syncthreads()
#define THREAD (int)threadIdx.x
#define THREADS (int)blockDim.x
#else
#define SHARED
#define WAIT
#define THREAD 0
#define THREADS 1
#endif

__device__ unsigned twisted(const unsigned* old, const unsigned* state, int i) {{
  unsigned next = i < 623 ? old[i + 1] : state[0];
  unsigned y = (old[i] & 0x80000000u) | (next & 0x7fffffffu);
  unsigned other = i < 227 ? old[i + 397] : state[i - 227];
  return other ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0u);
}}

__device__ unsigned tempered(unsigned y) {{
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680u;
  y ^= y << 15 & 0xefc60000u;
  return y ^ y >> 18;
}}

// One block makes all; elements of two words never part, as a state has an even number of words.
extern "C" __global__ void accel_lab_twisted(
    Element* out, long long n, const unsigned* seeded, u64 offset) {{
  const int each = sizeof(Element) / 4;
  SHARED unsigned state[2][625];
  for (int i = THREAD; i < 624; i += THREADS) state[0][i] = seeded[i];
  WAIT;
  u64 end = offset + (u64)n * each, first = 0;
  for (int turn = 0; first < end; first += 624, turn ^= 1) {{
    const unsigned* old = state[turn];
    unsigned* now = state[turn ^ 1];
    for (int part = 0; part < 624; part += 227) {{
      int until = part + 227 < 624 ? part + 227 : 624;
      for (int i = part + THREAD; i < until; i += THREADS) now[i] = twisted(old, now, i);
      WAIT;
    }}
    // An element of two words may begin with the last word of the state before.
    long long skip = offset > first ? (long long)(offset - first) : 0;
    for (int i = (int)(skip < 624 ? skip : 624) + THREAD; i < 624; i += THREADS) {{
      u64 at = first + i - offset;
      unsigned w[2];
      if (each == 1) {{
        w[0] = tempered(now[i]);
      }} else {{
        if (at % 2 == 0) continue;
        w[0] = tempered(i ? now[i - 1] : old[623]), w[1] = tempered(now[i]);
      }}
      long long element = (long long)(at / each);
      if (element < n) made(w, out[element]);
    }}
    WAIT;
  }}
}}
"""
_POINTS = """
typedef {word} Word;

__device__ void made(Word x, unsigned& e) {{ e = (unsigned)x; }}
__device__ void made(Word x, u64& e) {{ e = x; }}
__device__ void made(Word x, float& e) {{
  unsigned w = (unsigned)x;
  philox::unit(&w, e);
}}
__device__ void made(Word x, double& e) {{
  e = (double)((u64)x >> 11) * 1.1102230246251565e-16 + 5.5511151231257827e-17;
}}

extern "C" __global__ void accel_lab_points(
    Element* out, long long n, long long dimensions, const Word* directions, const Word* shifts,
    u64 offset) {{
  const int bits = 8 * sizeof(Word);
  for (long long i = FIRST; i < n; i += STEP) {{
    long long axis = i % dimensions;
    u64 index = offset + (u64)(i / dimensions);
    u64 gray = index ^ index >> 1;
    Word x = shifts[axis];
    for (int bit = 0; bit < bits && gray >> bit; ++bit)
      if (gray >> bit & 1) x ^= directions[axis * bits + bit];
    made(x, out[i]);
  }}
}}
"""
_CHOSEN = """
extern "C" __global__ void accel_lab_chosen(
    {element}* out, long long n, u64 seed, u64 stream, u64 offset, const u64* sums,
    long long count) {{
  u64 all = sums[count - 1];
  for (long long i = FIRST; i < n; i += STEP) {{
    unsigned w[4];
    philox::four(seed, stream, offset + 4 * (u64)i, w);
    // Where the weights are refused there may be none.
    u64 v = all ? philox::chosen<4>(w, all) : 0;
    long long low = 0, high = count - 1;
    while (low < high) {{
      long long middle = (low + high) / 2;
      if (sums[middle] > v) high = middle;
      else low = middle + 1;
    }}
    out[i] = ({element})low;
  }}
}}
"""


def leapt_source(generator: str, dtype: str) -> str:
    """Return the C++ of XORWOW or MRG32k3a."""
    kernel = _LEAPT.format(engine=_ENGINES[generator], leap=LEAP, powers=POWERS)
    return ROUNDING + PHILOX + GRID + _ELEMENT.format(element=ELEMENTS[dtype]) + kernel


def twisted_source(dtype: str) -> str:
    """Return the C++ of MT19937."""
    element = _ELEMENT.format(element=ELEMENTS[dtype])
    return ROUNDING + PHILOX + GRID + element + _TWISTED


def points_source(dtype: str) -> str:
    """Return the C++ of Sobol's points."""
    word = "u64" if dtype.endswith("64") else "unsigned"
    element = f"typedef {ELEMENTS[dtype]} Element;\n"
    return ROUNDING + PHILOX + GRID + element + _POINTS.format(word=word)


def chosen_source(dtype: str) -> str:
    """Return the C++ of indices by weights."""
    element = "int" if dtype == "int32" else "long long"
    return ROUNDING + PHILOX + GRID + _CHOSEN.format(element=element)
