"""The functions of `libraries.rng.real` in C++, step by step; a test compares each bit.

The compiler must not join a product and a sum: NVRTC is told so by `--fmad=false`.
"""

from accel_lab.libraries.rng import real


def _horner(name: str, terms: tuple[float, ...]) -> str:
    value = repr(terms[0])
    for term in terms[1:]:
        value = f"({value} * x + {term!r})"
    return f"__device__ double {name}(double x) {{ return {value}; }}\n"


SOURCE = (
    "namespace real {\n"
    + _horner("log_terms", real.LOG_TERMS)
    + _horner("exp_terms", real.EXP_TERMS)
    + _horner("sine_terms", real.SINE_TERMS)
    + _horner("cosine_terms", real.COSINE_TERMS)
    + _horner("stirling_terms", real.STIRLING_TERMS)
    + _horner("series_terms", real.SERIES_TERMS)
    + """
__device__ double log(double x) {{
  int exponent;
  double mantissa = frexp(x, &exponent);
  if (mantissa < {SQRT_HALF!r}) mantissa = mantissa + mantissa, exponent -= 1;
  double f = mantissa - 1.0, e = (double)exponent;
  double s = f / (mantissa + 1.0);
  double twice = s + s, square = s * s;
  double rest = twice * (square * log_terms(square));
  return e * {LN2_HIGH!r} + (twice + (rest + e * {LN2_LOW!r}));
}}

// 2 to the power of what leaves a normal number.
__device__ double power_of_two(int k) {{
  union {{ unsigned long long bits; double value; }} both;
  both.bits = (unsigned long long)(k + 1023) << 52;
  return both.value;
}}

__device__ double exp(double x) {{
  x = x < -800.0 ? -800.0 : x;
  x = x > 800.0 ? 800.0 : x;
  double turns = rint(x * {PER_LN2!r});
  double rest = (x - turns * {LN2_HIGH!r}) - turns * {LN2_LOW!r};
  double half = floor(turns * 0.5);
  return exp_terms(rest) * power_of_two((int)half) * power_of_two((int)(turns - half));
}}

__device__ void sine_cosine(double turns, double* sine, double* cosine) {{
  double quarter = rint(4.0 * turns);
  double angle = (turns - quarter * 0.25) * {TWO_PI!r};
  double square = angle * angle;
  double s = angle + angle * (square * sine_terms(square));
  double c = 1.0 + square * cosine_terms(square);
  int at = (int)quarter;
  double first = at & 1 ? c : s, second = at & 1 ? s : c;
  *sine = at & 2 ? -first : first;
  *cosine = (at + 1) & 2 ? -second : second;
}}

__device__ double stirling_error(double k) {{
  const double known[] = {{{KNOWN}}};
  if (k < {TABULATED!r}) return known[(int)k];
  double square = 1.0 / (k * k);
  return stirling_terms(square) / k;
}}

__device__ double deviance(double x, double mean) {{
  double apart = x - mean;
  if (fabs(apart) < 0.1 * (x + mean)) {{
    double v = apart / (x + mean);
    double square = v * v, twice = x * v;
    return apart * v + (twice + twice) * (square * series_terms(square));
  }}
  return (x * log(x / mean) + mean) - x;
}}

}}  // namespace real
""".format(**vars(real), KNOWN=", ".join(map(repr, real.STIRLING)))
)
