"""The source of kernels that draw from distributions, an element a thread at a time.

The C++ is portable, as that of `philox` is. It takes the steps of `backends/host/rng`, in the same
order, so that each number is the host's.
"""

from typing import NamedTuple

import numpy as np

from accel_lab.backends.cuda.device.narrow_floats import FORMATS, HALF
from accel_lab.backends.cuda.device.narrow_floats import SOURCE as ROUNDING
from accel_lab.backends.cuda.rng.philox import SOURCE as PHILOX
from accel_lab.backends.cuda.rng.real import SOURCE as REAL
from accel_lab.libraries.rng import real
from accel_lab.libraries.rng.distributions import PLANES, SURE

PARAMETERS = 9
"""How many numbers a kernel is given, whatever it draws."""

GRID = """
#ifdef __CUDACC__
#define FIRST ((long long)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((long long)gridDim.x * blockDim.x)
#else
#define __global__
#define FIRST 0
#define STEP 1
#endif

using philox::u64;
"""
"""Which elements a thread makes; compiled for the CPU, one makes all."""

_COMMON = """
__device__ double exact(double u) {{ return u; }}
__device__ double exact(float u) {{ return narrow::widened(u); }}

struct Place {{ u64 seed, stream, offset; }};

// Of Marsaglia and Tsang; adds to `power` the logarithm of what the number is to be multiplied by.
__device__ double gamma_number(Place at, double d, double c, double inverse, double* power) {{
  for (unsigned plane = 0;; ++plane) {{
    unsigned w[8];
    philox::four(at.seed, at.stream, at.offset, w, plane);
    philox::four(at.seed, at.stream, at.offset + 4, w + 4, plane);
    double sine, cosine;
    real::sine_cosine(philox::inside(w + 2), &sine, &cosine);
    double z = sqrt(-2.0 * real::log(philox::inside(w))) * sine;
    double root = 1.0 + c * z;
    bool positive = root > 0.0;
    if (!positive) root = 1.0;
    double cube = (root * root) * root;
    double bound = ((0.5 * (z * z) + d) - d * cube) + d * real::log(cube);
    bool accepted = positive && real::log(philox::inside(w + 4)) < bound;
    if (accepted || plane + 1 == {planes}) {{
      *power = inverse != 0.0 ? real::log(philox::inside(w + 6)) * inverse : 0.0;
      return d * cube;
    }}
  }}
}}

// The first number whose sum of chances reaches u.
__device__ double inverted(Place at, double none, double n, double ratio) {{
  unsigned w[4];
  philox::four(at.seed, at.stream, at.offset, w);
  double u = philox::inside(w), sum = none, chance = none, k = 0.0;
  while (u > sum) {{
    k += 1.0;
    chance = chance * ((n != 0.0 ? (n - k) * ratio : ratio) / k);
    double after = sum + chance;
    if (after == sum && k > ratio * n + ratio) return k - 1.0;
    sum = after;
  }}
  return k;
}}

__device__ double poisson_log(double k, double mean, double, double) {{
  if (k < 1.0) return -mean;
  double error = real::stirling_error(k) + real::deviance(k, mean);
  return -error - ({half_ln_two_pi!r} + 0.5 * real::log(k));
}}

__device__ double binomial_log(double k, double n, double p, double q) {{
  if (k < 1.0) return n * real::log(q);
  if (k > n - 1.0) return n * real::log(p);
  double rest = n - k;
  double errors = real::stirling_error(n) - real::stirling_error(k) - real::stirling_error(rest);
  double apart = real::deviance(k, n * p) + real::deviance(rest, n * q);
  return (errors - apart) - ({half_ln_two_pi!r} + 0.5 * real::log(k * (rest / n)));
}}

// Transformed rejection; h has a, b, centre, where v is accepted unseen, weight.
template <double (*LOGARITHM)(double, double, double, double)>
__device__ double transformed(
    Place at, const double* h, double most, double x, double y, double z) {{
  for (unsigned plane = 0;; ++plane) {{
    unsigned w[4];
    philox::four(at.seed, at.stream, at.offset, w, plane);
    double u = philox::inside(w) - 0.5, v = philox::inside(w + 2);
    double near = 0.5 - fabs(u);
    double k = floor((2.0 * h[0] / near + h[1]) * u + h[2]);
    bool within = k >= 0.0 && k <= most;
    if (!within) k = 0.0;
    if ((near >= {sure!r} && v <= h[3]) || plane + 1 == {planes}) return k;
    double height = (real::log(v) + h[4]) - real::log(h[0] / (near * near) + h[1]);
    if (within && height <= LOGARITHM(k, x, y, z)) return k;
  }}
}}

__device__ double make(Place at, long long i, const double* p) {{
  double result = 0.0;
{make}
  return result;
}}

extern "C" __global__ void {name}(
    {element}* out, long long n, u64 seed, u64 stream, u64 offset, {parameters}) {{
  const double p[] = {{{numbers}}};
  for (long long i = FIRST; i < n; i += STEP) {{
    Place at = {{seed, stream, offset}};
    double value = make(at, i, p);
    out[i] = {encode};
  }}
}}
"""
_U = {
    1: "double u = philox::inside(philox::word(at.seed, at.stream, at.offset + (u64)i));",
    2: """unsigned w[4];
  philox::four(at.seed, at.stream, at.offset + 2 * (u64)i, w);
  double u = philox::inside(w);""",
}
_MAKE = {
    "log_normal": """
  unsigned w[4];
  philox::four(at.seed, at.stream, at.offset + {each} * (u64)(i & ~1ll), w);
  {number} u, t;
  philox::unit(w, u);
  philox::unit(w + {each}, t);
  double sine, cosine;
  real::sine_cosine(exact(t), &sine, &cosine);
  double z = sqrt(-2.0 * real::log(exact(u))) * (i & 1 ? cosine : sine);
  result = real::exp(z * p[1] + p[0]);""",
    "exponential": """
  {u}
  result = -real::log(u) * p[0];""",
    "cauchy": """
  {u}
  double sine, cosine;
  real::sine_cosine((u - 0.5) * 0.5, &sine, &cosine);
  result = p[0] + p[1] * (sine / cosine);""",
    "gamma": """
  double power;
  at.offset += {each} * (u64)i;
  double cube = gamma_number(at, p[0], p[1], p[2], &power);
  result = p[3] * (cube * real::exp(power));""",
    "beta": """
  double x, y;
  at.offset += {each} * (u64)i;
  double cube = gamma_number(at, p[0], p[1], p[2], &x);
  x = real::log(cube) + x;
  at.offset += 8;
  cube = gamma_number(at, p[3], p[4], p[5], &y);
  y = real::log(cube) + y;
  result = 1.0 / (1.0 + real::exp(y - x));""",
    "poisson": """
  at.offset += {each} * (u64)i;
  if (p[0] == 0.0)
    result = inverted(at, p[1], p[2], p[3]);
  else
    result = transformed<poisson_log>(at, p + 1, 1e300, p[6], 0.0, 0.0);""",
    "binomial": """
  at.offset += {each} * (u64)i;
  if (p[0] == 0.0) {{
    result = inverted(at, p[1], p[2], p[3]);
    if (p[5] != 0.0) result = p[4] - result;
  }} else {{
    result = transformed<binomial_log>(at, p + 1, p[6], p[6], p[8], 1.0 - p[8]);
    if (p[7] != 0.0) result = p[6] - result;
  }}""",
}


class Sampling(NamedTuple):
    """One kernel.

    Attributes:
        kind: what is drawn, as the backend's method is called.
        dtype: what an element is: of counts, the unsigned one of its width.
        each: how many words an element takes.
    """

    kind: str
    dtype: str
    each: int

    @property
    def name(self) -> str:
        """The kernel's own name."""
        return f"accel_lab_{self.kind}_{self.dtype}"


def sampling_source(form: Sampling) -> str:
    """Return the C++ of one kernel."""
    narrow = HALF if form.dtype == "float16" else FORMATS.get(form.dtype)
    if narrow is not None:
        element, encode = "unsigned short", narrow.encode("narrow::nearest(value)")
    elif form.dtype.startswith("uint"):
        element = {4: "unsigned", 8: "u64"}[np.dtype(form.dtype).itemsize]
        encode = f"({element})(long long)value"
    else:
        element = "double" if form.dtype == "float64" else "float"
        encode = "value" if element == "double" else "narrow::nearest(value)"
    number = "double" if form.dtype == "float64" else "float"
    make = _MAKE[form.kind].format(each=form.each, number=number, u=_U.get(form.each, ""))
    names = [f"p{at}" for at in range(PARAMETERS)]
    kernel = _COMMON.format(
        element=element,
        encode=encode,
        half_ln_two_pi=real.HALF_LN_TWO_PI,
        make=make,
        name=form.name,
        numbers=", ".join(names),
        parameters=", ".join(f"double {name}" for name in names),
        planes=PLANES,
        sure=SURE,
    )
    return ROUNDING + PHILOX + GRID + REAL + kernel
