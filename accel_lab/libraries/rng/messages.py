"""The messages of `rng`: a draw is a pure function of its fields, so it can be rerun.

Random words come from Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC 2011) in cuRAND's order. The key is the seed. Word i of a stream is lane
i mod 4 of block b = i // 4, whose counter is two 64-bit numbers: b // 65536, then
65536 stream + b mod 65536. No two streams of one seed share a counter; stream 0 is what cuRAND's
PHILOX4_32_10 generates with that seed, word by word.

A draw takes the words of its stream from `offset` on, a fixed number for each element, which
`consumes` adds up: the next draw begins at `offset + consumes`.
"""

from functools import lru_cache
from typing import ClassVar

import numpy as np

from accel_lab.compute.arrays.dtypes import is_float, itemsize, numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import INTEGERS, REAL_FLOATS
from accel_lab.libraries.authoring.operand import element, kind, require_out, result
from accel_lab.libraries.authoring.shape import require_extents

SEEDS = 2**64
STREAMS = 2**48
OFFSETS = 2**64


class Draw(Operation[AccelRef], frozen=True, array_like=True, eq=False):
    """Draw random numbers, in a new buffer or into `out` of this shape and dtype.

    Attributes:
        seed: the key, from 0 to 2**64 - 1.
        stream: which of the seed's 2**48 streams of words.
        offset: how many words of the stream come before the first one used.
    """

    library: ClassVar[str] = "rng"
    shape: tuple[int, ...]
    dtype: str
    seed: int
    stream: int = 0
    offset: int = 0
    out: AccelRef | None = None

    @property
    def each(self) -> int:
        """How many words an element takes."""
        return -(-itemsize(self.dtype) // 4)

    @property
    def consumes(self) -> int:
        """How many words of its stream this draw takes."""
        return self.each * self._count()

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        spec = result(self, require_extents(kind(self), self.shape), self.dtype)
        self._require_whole("seed", self.seed, SEEDS)
        self._require_whole("stream", self.stream, STREAMS)
        self._require_whole("offset", self.offset, OFFSETS)
        if self.offset + self.consumes > OFFSETS:
            raise InvalidArgument(
                f"{kind(self)} takes {self.consumes} words from offset {self.offset} on, and a "
                f"stream has {OFFSETS}; take another stream"
            )
        require_out(self, self.out, spec)
        return spec

    def _count(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def _require_whole(self, name: str, value: int, limit: int) -> None:
        if type(value) is not int or not 0 <= value < limit:
            raise InvalidArgument(
                f"{kind(self)}: {name} must be an integer from 0 to {limit - 1}, not {value!r}"
            )


class Words(Draw, frozen=True, array_like=True, eq=False, tag=220):
    """Draw random words: uint32 as Philox makes them, uint64 of two, the first one low."""

    dtypes: ClassVar = frozenset({"uint32", "uint64"})


class Integers(Draw, frozen=True, array_like=True, eq=False, kw_only=True, tag=221):
    """Draw integers from `low` to `last`, both included; `bool` has 0 and 1.

    With n = last - low + 1, an element is low + floor(v n / 2**(32 w)), where v is a number of w
    words, the first one lowest. w is 1 for a power of two up to 2**32; 2 for any other n up to
    2**32, and for greater powers of two; else 4. Powers of two are exactly uniform. Any other
    integer's probability differs from 1 / n by less than 2**-64, or 2**-128 where w is 4.
    """

    dtypes: ClassVar = INTEGERS
    low: int
    last: int

    @property
    def span(self) -> int:
        """How many integers there are to draw from."""
        return self.last - self.low + 1

    @property
    def each(self) -> int:
        """How many words an element takes: 1, 2 or 4."""
        return words_each(self.span)

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        if numpy_dtype(self.dtype).kind in "biu":
            for name in ("low", "last"):
                element(self, name, getattr(self, name), self.dtype)
        if type(self.low) is not int or type(self.last) is not int or self.last < self.low:
            raise InvalidArgument(
                f"Integers: there is no integer from low {self.low!r} to {self.last!r}"
            )
        return super().infer()


class Uniform(Draw, frozen=True, array_like=True, eq=False, tag=222):
    """Draw real numbers spread evenly over (low, high].

    For float32, u is cuRAND's: the word, as the nearest float32, times 2**-32 plus 2**-33. For
    float64, u = z 2**-53 + 2**-54 with z = x ^ (y << 21) for the words x, y in their order. Both
    lie in (0, 1]. An element is low + u (high - low), each step rounded to nearest, and never
    beyond `high`; it can round to `low`. float16 and bfloat16 are float32's numbers rounded.
    """

    dtypes: ClassVar = REAL_FLOATS
    low: float = 0.0
    high: float = 1.0

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        spec = super().infer()
        if is_float(self.dtype):
            low, _, high = self.scale()
            if not low <= high:
                raise InvalidArgument(f"Uniform: low is {self.low}, above high, {self.high}")
        return spec

    def scale(self) -> tuple[float, float, float]:
        """Return low, high - low and high, in the precision in which they are used."""
        real = real_type(self.dtype)
        low = require_finite(self, "low", self.low, self.dtype)
        high = require_finite(self, "high", self.high, self.dtype)
        span = require_finite(self, "high - low", high - low, self.dtype)
        return float(real(low)), float(real(span)), float(real(high))


class Normal(Draw, frozen=True, array_like=True, eq=False, tag=223):
    """Draw from the normal distribution of mean `mean` and standard deviation `std`.

    Elements 2k and 2k + 1 are z = sqrt(-2 ln u) sin(2 pi t) and sqrt(-2 ln u) cos(2 pi t) (Box
    and Muller) for two successive numbers u, t of `Uniform`, then z std + mean, each step
    rounded; a last odd element takes both numbers too. For z, every backend is within 4 units in
    the last place of the exact value. float16 and bfloat16 are float32's numbers rounded.
    """

    dtypes: ClassVar = REAL_FLOATS
    mean: float = 0.0
    std: float = 1.0

    @property
    def consumes(self) -> int:
        """How many words of its stream this draw takes: a whole number of pairs."""
        count = self._count()
        return self.each * (count + count % 2)

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        spec = super().infer()
        if is_float(self.dtype):
            _, std = self.scale()
            if std < 0:
                text = f"{kind(self)}: std is {self.std}, and must not be negative"
                raise InvalidArgument(text)
        return spec

    def scale(self) -> tuple[float, float]:
        """Return the mean and the deviation, in the precision in which they are used."""
        real = real_type(self.dtype)
        mean = require_finite(self, "mean", self.mean, self.dtype)
        return float(real(mean)), float(real(require_finite(self, "std", self.std, self.dtype)))


def words_each(span: int) -> int:
    """Return how many words it takes to choose one of `span` integers, as `Integers` says."""
    even = span & (span - 1) == 0
    if span <= 2**32:
        return 1 if even else 2
    return 2 if even else 4


def real_type(dtype: str) -> type[np.float32 | np.float64]:
    """Return the precision in which a dtype's random numbers are computed."""
    return np.float64 if dtype == "float64" else np.float32


def require_finite(message: Draw, name: str, value: float, dtype: str) -> float:
    """Return a number as a float.

    Raises:
        InvalidArgument: it is none, or none that is finite in the dtype.
    """
    number = float(element(message, name, value, dtype))  # type: ignore[arg-type]
    if not _is_finite(number, dtype):
        raise InvalidArgument(f"{kind(message)}: {name} is {value}, not finite in {dtype}")
    return number


@lru_cache(maxsize=1024)  # what a loop draws between stays, and NumPy takes 5 µs to tell
def _is_finite(number: float, dtype: str) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.asarray(number).astype(numpy_dtype(dtype)).astype(np.float64)))
