"""Distributions whose numbers are made of Philox's words, the same on every backend, to the bit.

All is computed in float64 by the functions of `real`, and rounded once to the dtype; float16 and
bfloat16 are float32's numbers rounded. A number u lies inside (0, 1) and is exact: (w + 1/2) 2**-32
of one word, or (v // 2**12 + 1/2) 2**-52 of v, two words, the first one low.

An element takes a fixed number of words, so that the next draw's offset is known before this one
has run. What rejects a try reads the same places of the stream's next **plane**: plane k has k in
the upper 18 bits of the counter's first half, which no offset reaches. Plane 0 are the words.
After 255 refusals, of which one in two is the most, the last try is taken.
"""

import math
from typing import ClassVar

from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.operand import RANGES, kind
from accel_lab.libraries.rng import real
from accel_lab.libraries.rng.messages import Draw, Normal, require_finite

PLANES = 256
"""How often an element tries at most."""
MOST = 2.0**40
"""The largest mean, and number of trials."""
SURE = 0.07
"""How far u of Hörmann's tries is from its ends where small v are accepted unseen."""
LEAST_SHAPE = 1e-300
COUNTS = frozenset({"int32", "uint32", "int64", "uint64"})

_SMALL = 10  # a mean up to which counts are found by their sums
_HALF = 0.5
_SERIES = 0.25


class LogNormal(Normal, frozen=True, array_like=True, eq=False, tag=224):
    """Draw numbers whose logarithms are normal, of mean `mean` and standard deviation `std`.

    An element is exp(z std + mean) for the z of `Normal` at the same place, not rounded before.
    What the dtype cannot hold is infinity.
    """

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the backends compute with."""
        return float(self.mean), float(self.std)


class Distribution(Draw, frozen=True, array_like=True, eq=False):
    """A distribution of real numbers, each made of words of its own."""

    dtypes: ClassVar = REAL_FLOATS

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        spec = super().infer()
        if self.dtype in self.dtypes:
            self.require()
        return spec

    def require(self) -> None:
        """Refuse parameters for which there is no such distribution."""
        raise NotImplementedError

    def positive(self, name: str) -> float:
        """Return a parameter, a number above 0 that is finite in the dtype."""
        value = require_finite(self, name, getattr(self, name), self.dtype)
        if value <= 0:
            raise InvalidArgument(f"{kind(self)}: {name} is {value}, and must be above 0")
        return value


class Exponential(Distribution, frozen=True, array_like=True, eq=False, tag=225):
    """Draw from the exponential distribution of mean `scale`: -ln(u) scale.

    u is of one word, for float64 of two.
    """

    scale: float = 1.0

    def require(self) -> None:
        """Refuse a scale that is not above 0."""
        self.positive("scale")

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the backends compute with."""
        return (float(self.scale),)


class Cauchy(Distribution, frozen=True, array_like=True, eq=False, tag=226):
    """Draw from the Cauchy distribution: `median` + `scale` tan(pi (u - 1/2)).

    u is of one word, for float64 of two.
    """

    median: float = 0.0
    scale: float = 1.0

    def require(self) -> None:
        """Refuse a median that is not finite, and a scale that is not above 0."""
        require_finite(self, "median", self.median, self.dtype)
        self.positive("scale")

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the backends compute with."""
        return float(self.median), float(self.scale)


class Gamma(Distribution, frozen=True, array_like=True, eq=False, kw_only=True, tag=227):
    """Draw from the gamma distribution of shape `alpha`, with mean `alpha` times `scale`.

    As G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26,
    2000, without its squeeze: a try takes u, t, v of two words each, and z = sqrt(-2 ln u)
    sin(2 pi t). For `alpha` below 1 two more words are the power of u that it names.
    """

    alpha: float
    scale: float = 1.0

    @property
    def each(self) -> int:
        """How many words an element takes."""
        return 8

    def require(self) -> None:
        """Refuse parameters that are not above 0, or beyond what is exact enough."""
        self.positive("scale")
        require_shape(self, "alpha")

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the backends compute with."""
        return (*gamma_parameters(self.alpha), float(self.scale))


class Beta(Distribution, frozen=True, array_like=True, eq=False, kw_only=True, tag=228):
    """Draw from the beta distribution on [0, 1]: x / (x + y) for gamma numbers x and y.

    These are of shape `a`, made of an element's first 8 words, and `b`, of the other 8.
    """

    a: float
    b: float

    @property
    def each(self) -> int:
        """How many words an element takes."""
        return 16

    def require(self) -> None:
        """Refuse parameters that are not above 0, or beyond what is exact enough."""
        require_shape(self, "a")
        require_shape(self, "b")

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the backends compute with."""
        return (*gamma_parameters(self.a), *gamma_parameters(self.b))


class Count(Distribution, frozen=True, array_like=True, eq=False):
    """A distribution of whole numbers from 0 on; a try takes u and v of two words each."""

    dtypes: ClassVar = COUNTS

    @property
    def each(self) -> int:
        """How many words an element takes."""
        return 4


class Poisson(Count, frozen=True, array_like=True, eq=False, kw_only=True, tag=229):
    """Draw from the Poisson distribution of mean `mean`.

    Up to a mean of 10 by adding chances until they reach u, else by W. Hörmann, "The transformed
    rejection method for generating Poisson random variables", Insurance: Math. Econ. 12, 1993.
    """

    mean: float

    def require(self) -> None:
        """Refuse a mean that is below 0, or for which the dtype has too few numbers."""
        mean = _number(self, "mean", self.mean)
        if not 0 <= mean <= MOST:
            text = f"Poisson: mean is {mean}, and must be from 0 to 2**40"
            raise InvalidArgument(text)
        # Beyond it no try is accepted: its chance is less than the smallest v.
        far = mean + 20 * math.sqrt(mean) + 200
        if far > RANGES[self.dtype][1]:
            raise InvalidArgument(
                f"Poisson: with a mean of {mean} there are numbers up to {far:.0f}, which "
                f"{self.dtype} has not; draw int64"
            )

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the backends compute with.

        Either 0, the chance of 0, what the next chance is of one: p k = p (n - k) r / k; or 1 and
        the numbers of the rejection.
        """
        mean = float(self.mean)
        if mean < _SMALL:
            return 0.0, float(real.exp(-mean)), 0.0, mean
        b = 0.931 + 2.53 * math.sqrt(mean)
        a = -0.059 + 0.02483 * b
        weight = real.log(1.1239 + 1.1328 / (b - 3.4))
        return 1.0, a, b, mean + 0.43, 0.9277 - 3.6224 / (b - 2.0), float(weight), mean


class Binomial(Count, frozen=True, array_like=True, eq=False, kw_only=True, tag=230):
    """Draw how many of `n` trials succeed, each with chance `p`.

    Up to a mean of 10, of what is rarer, by adding chances until they reach u, else by W. Hörmann,
    "The generation of binomial random variates", J. Stat. Comput. Simul. 46, 1993.
    """

    n: int
    p: float

    def require(self) -> None:
        """Refuse a number of trials that the dtype lacks, and a chance that is none."""
        most = min(int(MOST), RANGES[self.dtype][1])
        if type(self.n) is not int or not 0 <= self.n <= most:
            text = f"Binomial: n must be an integer from 0 to {most}, not {self.n!r}"
            raise InvalidArgument(f"{text}, for {self.dtype}")
        if not 0 <= _number(self, "p", self.p) <= 1:
            raise InvalidArgument(f"Binomial: p is {self.p}, and a chance is from 0 to 1")

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the backends compute with, as of `Poisson`; at the end n, p and what is drawn of n.

        That is 1 if failures are counted, as they are rarer, else 0.
        """
        n, p = float(self.n), float(self.p)
        fails = p > _HALF
        p = 1.0 - p if fails else p
        if n * p < _SMALL:
            none = float(real.exp(n * log_of_rest(p)))
            return 0.0, none, n + 1.0, p / (1.0 - p), n, float(fails)
        spread = math.sqrt(n * p * (1.0 - p))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * p
        mode = math.floor((n + 1.0) * p)
        weight = real.log((2.83 + 5.1 / b) * spread) + binomial_log(float(mode), n, p)
        return 1.0, a, b, n * p + 0.5, 0.92 - 4.2 / b, float(weight), n, float(fails), p


def gamma_parameters(alpha: float) -> tuple[float, float, float]:
    """Return d and c of Marsaglia and Tsang, and 1 / alpha where it is below 1, else 0."""
    alpha = float(alpha)
    d = (alpha + 1.0 if alpha < 1 else alpha) - 1.0 / 3.0
    return d, 1.0 / math.sqrt(9.0 * d), 1.0 / alpha if alpha < 1 else 0.0


def binomial_log(k: float, n: float, p: float) -> float:
    """Return the logarithm of the chance of k of n, for 0 < k < n, as Loader does."""
    rest = n - k
    errors = real.stirling_error(n) - real.stirling_error(k) - real.stirling_error(rest)
    apart = real.deviance(k, n * p) + real.deviance(rest, n * (1.0 - p))
    scale = real.HALF_LN_TWO_PI + 0.5 * real.log(k * (rest / n))
    return float((errors - apart) - scale)


def log_of_rest(p: float) -> float:
    """Return ln(1 - p) for p from 0 to 1/2."""
    if p > _SERIES:
        return float(real.log(1.0 - p))
    s = -p / (2.0 - p)
    square = s * s
    return float((s + s) + (s + s) * (square * real.horner(square, real.LOG_TERMS)))


def require_shape(message: Draw, name: str) -> None:
    """Refuse a shape that is not from 1e-300 to 2**32.

    Raises:
        InvalidArgument: it is not.
    """
    value = _number(message, name, getattr(message, name))
    if not LEAST_SHAPE <= value <= 2**32:
        text = f"{kind(message)}: {name} is {value}, and must be from 1e-300 to 2**32"
        raise InvalidArgument(text)


def _number(message: Draw, name: str, value: float) -> float:
    """Return a number as a float, whatever the dtype of the elements."""
    return require_finite(message, name, value, "float64")
