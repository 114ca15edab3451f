"""Random numbers: one Philox, bit for bit the same words on every backend.

`Generator` counts the words it has taken, as NumPy's does; the functions here draw once, from a
seed that is given or made up, and say in the message which.
"""

from typing import Any, Protocol, SupportsIndex

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.operand import Scalar, output, plain
from accel_lab.libraries.authoring.shape import Integers as Extents
from accel_lab.libraries.rng.distributions import (
    Beta,
    Binomial,
    Cauchy,
    Exponential,
    Gamma,
    LogNormal,
    Poisson,
)
from accel_lab.libraries.rng.engines import Generate, generate
from accel_lab.libraries.rng.generator import Generator, State
from accel_lab.libraries.rng.messages import Draw, Integers, Normal, Uniform, Words
from accel_lab.libraries.rng.place import described, integer_range, placed
from accel_lab.libraries.rng.points import Sobol, sobol
from accel_lab.libraries.rng.sampling import (
    beta,
    binomial,
    cauchy,
    exponential,
    gamma,
    log_normal,
    poisson,
)
from accel_lab.libraries.rng.selection import (
    Discrete,
    InvalidWeights,
    Permutation,
    discrete,
    permutation,
)

__all__ = [
    "Beta",
    "Binomial",
    "Cauchy",
    "Discrete",
    "Draw",
    "Exponential",
    "Gamma",
    "Generate",
    "Generator",
    "Integers",
    "InvalidWeights",
    "LogNormal",
    "Normal",
    "Permutation",
    "Poisson",
    "RngActor",
    "RngLibrary",
    "Sobol",
    "State",
    "Uniform",
    "Words",
    "beta",
    "binomial",
    "cauchy",
    "discrete",
    "exponential",
    "gamma",
    "generate",
    "integers",
    "log_normal",
    "normal",
    "permutation",
    "poisson",
    "sobol",
    "uniform",
    "words",
]


def words(
    device: Device,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw words as `Words` says, uint32 unless told otherwise; does not block.

    A seed that is not given is made up. Shape and dtype are those of `out` where there is one,
    else the shape is ().

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "uint32")
    return device_first(device).ask(Words(*what, *placed(seed, stream, offset), out))


def integers(
    device: Device,
    low: SupportsIndex,
    high: SupportsIndex | None = None,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw integers from `low` to `high - 1`, or below `low` from 0; int64 unless told otherwise.

    Does not block. Else as `words`, and as `Integers` says.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "int64")
    first, last = integer_range(low, high)
    place = placed(seed, stream, offset)
    return device_first(device).ask(Integers(*what, *place, out, low=first, last=last))


def uniform(
    device: Device,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    low: Scalar = 0.0,
    high: Scalar = 1.0,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw real numbers in (low, high] as `Uniform` says, float32 unless told otherwise.

    Does not block. Else as `words`.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "float32")
    return device_first(device).ask(
        Uniform(*what, *placed(seed, stream, offset), out, plain(low), plain(high))
    )


def normal(
    device: Device,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    mean: Scalar = 0.0,
    std: Scalar = 1.0,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw from the normal distribution as `Normal` says, float32 unless told otherwise.

    Does not block. Else as `words`.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "float32")
    return device_first(device).ask(
        Normal(*what, *placed(seed, stream, offset), out, plain(mean), plain(std))
    )


class RngLibrary(Protocol):
    """What a backend provides; `out` may have any strides, and each call only enqueues.

    `place` is (seed, stream, offset). How words become elements is told by the messages.
    """

    def integers(self, out: Any, place: tuple[int, int, int], *, low: int, span: int) -> None:
        """Write integers from `low` on, `span` different ones."""

    def uniform(
        self,
        out: Any,
        place: tuple[int, int, int],
        *,
        dtype: str,
        low: float,
        span: float,
        high: float,
    ) -> None:
        """Write low + u span, at most `high`; all are exact in the precision of the sums."""

    def normal(
        self, out: Any, place: tuple[int, int, int], *, dtype: str, mean: float, std: float
    ) -> None:
        """Write z std + mean; both are exact in the precision of the sums."""


class RngActor(LibraryActor):
    """Draws random numbers; it has no state but its kernels."""

    library = "rng"
    lib: RngLibrary

    @handles(Words)
    def words(self, m: Words, launch: Launch) -> None:
        """Draw integers of the dtype's whole range, which are the words themselves."""
        self.lib.integers(output(launch), _place_of(m), low=0, span=1 << 32 * m.each)

    @handles(Integers)
    def integers(self, m: Integers, launch: Launch) -> None:
        """Draw integers."""
        self.lib.integers(output(launch), _place_of(m), low=m.low, span=m.span)

    @handles(Uniform)
    def uniform(self, m: Uniform, launch: Launch) -> None:
        """Draw evenly spread numbers."""
        low, span, high = m.scale()
        place = _place_of(m)
        self.lib.uniform(output(launch), place, dtype=m.dtype, low=low, span=span, high=high)

    @handles(Normal)
    def normal(self, m: Normal, launch: Launch) -> None:
        """Draw normally distributed numbers."""
        mean, std = m.scale()
        self.lib.normal(output(launch), _place_of(m), dtype=m.dtype, mean=mean, std=std)


def _place_of(m: Draw) -> tuple[int, int, int]:
    return m.seed, m.stream, m.offset
