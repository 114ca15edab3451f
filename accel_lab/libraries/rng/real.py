"""Elementary functions of float64 that are the same everywhere, to the bit.

A vendor's `log` and NumPy's differ in the last bit, and a rejection that hangs on it would then
draw another number. These use nothing but what IEEE 754 rounds exactly: sums, products, quotients,
square roots, whole numbers and powers of two. The C++ of `backends/cuda/rng/real.py` does the same
steps in the same order. Each is within 4 units in the last place, which a test measures.

They take arrays of float64, or numbers.
"""

from typing import Any

import numpy as np

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts; the first has 21 zero bits at its end, so that its small multiples are exact.

As in fdlibm, by Sun Microsystems.
"""
PER_LN2 = 1.4426950408889634
TWO_PI = 6.283185307179586
SQRT_HALF = 0.7071067811865476
LOG_TERMS = tuple([1 / k for k in range(23, 1, -2)])
"""Of (log((1 + s) / (1 - s)) / (2 s) - 1) / s², highest first; s is from -0.172 to 0.172."""
EXP_TERMS = tuple([1 / np.prod(range(1, k + 1), dtype=float).item() for k in range(14, -1, -1)])
"""Taylor's, highest first: the argument is at most ln(2) / 2."""
SINE_TERMS = tuple(
    [(-1) ** k / np.prod(range(1, 2 * k + 2), dtype=float).item() for k in range(8, 0, -1)]
)
"""Of (sin(x) / x - 1) / x², highest first, and of (cos(x) - 1) / x²: x is at most pi / 4."""
COSINE_TERMS = tuple(
    [(-1) ** k / np.prod(range(1, 2 * k + 1), dtype=float).item() for k in range(9, 0, -1)]
)
STIRLING = (
    0.0,
    0.08106146679532726,
    0.0413406959554093,
    0.02767792568499834,
    0.020790672103765093,
    0.016644691189821193,
    0.013876128823070748,
    0.01189670994589177,
    0.010411265261972096,
    0.009255462182712733,
    0.00833056343336287,
    0.007573675487951841,
    0.00694284010720953,
    0.006408994188004207,
    0.0059513701127588475,
    0.005554733551962801,
)
"""ln k! less Stirling's formula, ln sqrt(2 pi k) + k ln k - k, for k from 1 to 15."""
TABULATED = 16.0
STIRLING_TERMS = (-1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
HALF_LN_TWO_PI = 0.9189385332046728
SERIES_TERMS = tuple([1 / k for k in range(17, 1, -2)])
"""Of `deviance` near the mean, highest first."""


def log(x: Any) -> Any:
    """Return the natural logarithm of positive normal numbers."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < SQRT_HALF
    mantissa = np.where(small, mantissa + mantissa, mantissa)
    exponent = np.where(small, exponent - 1, exponent).astype(np.float64)
    f = mantissa - 1.0
    s = f / (mantissa + 1.0)
    double = s + s
    square = s * s
    rest = double * (square * horner(square, LOG_TERMS))
    return exponent * LN2_HIGH + (double + (rest + exponent * LN2_LOW))


def exp(x: Any) -> Any:
    """Return e**x: 0 or infinity where no float64 is near, after rounding once where subnormal."""
    x = np.minimum(np.maximum(x, -800.0), 800.0)
    turns = np.rint(x * PER_LN2)
    rest = (x - turns * LN2_HIGH) - turns * LN2_LOW
    half = np.floor(turns * 0.5)
    with np.errstate(over="ignore", under="ignore"):
        near = horner(rest, EXP_TERMS) * np.ldexp(1.0, half.astype(np.int32))
        return near * np.ldexp(1.0, (turns - half).astype(np.int32))


def sine_cosine(turns: Any) -> tuple[Any, Any]:
    """Return sin(2 pi t) and cos(2 pi t), for t from -1 to 1."""
    quarter = np.rint(4.0 * turns)
    angle = (turns - quarter * 0.25) * TWO_PI
    square = angle * angle
    sine = angle + angle * (square * horner(square, SINE_TERMS))
    cosine = 1.0 + square * horner(square, COSINE_TERMS)
    at = quarter.astype(np.int64)
    odd = (at & 1) == 1
    first, second = np.where(odd, cosine, sine), np.where(odd, sine, cosine)
    return np.where(at & 2, -first, first), np.where((at + 1) & 2, -second, second)


def stirling_error(k: Any) -> Any:
    """Return ln k! less Stirling's formula, for whole numbers from 1 on."""
    known = np.asarray(STIRLING)[np.minimum(k, TABULATED - 1.0).astype(np.int64)]
    far = np.maximum(k, TABULATED)
    square = 1.0 / (far * far)
    return np.where(k < TABULATED, known, horner(square, STIRLING_TERMS) / far)


def deviance(x: Any, mean: Any) -> Any:
    """Return x ln(x / mean) + mean - x for positive numbers, without cancellation near the mean.

    As `bd0` of C. Loader, "Fast and accurate computation of binomial probabilities", 2000.
    """
    apart = x - mean
    v = apart / (x + mean)
    square = v * v
    double = x * v
    near = apart * v + (double + double) * (square * horner(square, SERIES_TERMS))
    far = (x * log(x / mean) + mean) - x
    return np.where(np.abs(apart) < 0.1 * (x + mean), near, far)


def horner(x: Any, terms: tuple[float, ...]) -> Any:
    """Return the polynomial of these coefficients, the highest first."""
    value = terms[0]
    for term in terms[1:]:
        value = value * x + term
    return value
