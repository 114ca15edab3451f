"""What is drawn of a set: one of several by weights, and all of them in a random order."""

from typing import Any, ClassVar, SupportsIndex

from accel_lab.compute.device import Device, device_first, device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import Directive, InvalidArgument, LibraryError
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import RANGES, describe, require_out
from accel_lab.libraries.authoring.shape import Integers as Extents
from accel_lab.libraries.rng.messages import Draw
from accel_lab.libraries.rng.place import described, placed, whole

INDICES = frozenset({"int32", "int64"})
_SUMS = 62  # bits of all weights together


class InvalidWeights(LibraryError, fields=("index",)):
    """Weights to draw by are negative, not finite, or all zero."""

    directive = Directive.RESUME
    remedy = "Give weights from 0 on, of which one is above 0."
    index: int


class Discrete(Draw, frozen=True, array_like=True, eq=False, kw_only=True, tag=231):
    """Draw indices of `weights` (k), each as often as its weight says; they need not add up to 1.

    Weights are taken as whole multiples of the largest one's 2**-s, rounded down, with 2**s from
    2**61 / k on: then their sums are exact, and a number of 4 words chooses as in `Integers`.
    Weights that are negative, not finite or all zero fail with `InvalidWeights`.
    """

    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    weights: AccelRef

    @property
    def each(self) -> int:
        """How many words an element takes."""
        return 4

    @property
    def scale(self) -> float:
        """How many units the largest weight is."""
        return 2.0 ** (_SUMS - self.weights.shape[0].bit_length())

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        if len(self.weights.shape) != 1 or not self.weights.shape[0]:
            what = describe(self.weights)
            raise InvalidArgument(
                f"Discrete: weights must be of one axis and not empty, not {what}"
            )
        require_index(self, self.weights.shape[0])
        spec = super().infer()
        require_out(self, self.out, spec, self.weights)
        return spec

    def judge(self, status: Any) -> InvalidWeights | None:
        """Refuse weights of which one is no weight: the first, or k where all are 0; else -1."""
        at, count = int(status[0]), self.weights.shape[0]
        if at < 0:
            return None
        what = f"weight {at} is negative or not finite" if at < count else "every weight is 0"
        return InvalidWeights(f"Discrete: {what}, of {count}", index=at)


class Permutation(Draw, frozen=True, array_like=True, eq=False, tag=232):
    """Draw a random order of the integers from 0 on, as many as `shape` has elements; one axis.

    They are sorted by a number of two words each, the first one low; of equals the lesser is first,
    which for n integers happens with a chance of less than n**2 / 2**65.
    """

    dtypes: ClassVar = INDICES

    @property
    def each(self) -> int:
        """How many words an element takes."""
        return 2

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        spec = super().infer()
        if len(spec.shape) != 1:
            raise InvalidArgument(f"Permutation: a shape of one axis is wanted, not {spec.shape}")
        if self.dtype in self.dtypes:
            require_index(self, spec.shape[0])
        return spec


def discrete(
    weights: AccelRef,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw indices of weights on their device, as `Discrete` says; int64 unless told otherwise.

    Does not block. Else as `words`.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "int64")
    place = placed(seed, stream, offset)
    return device_of(weights).ask(Discrete(*what, *place, out, weights=weights))


def permutation(
    device: Device,
    n: SupportsIndex,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw a random order of the integers below `n`, as `Permutation` says.

    int64 unless told otherwise. Does not block. Else as `words`.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described((whole(n),), dtype, out, "int64")
    place = placed(seed, stream, offset)
    return device_first(device).ask(Permutation(*what, *place, out))


def require_index(message: Draw, count: int) -> None:
    """Refuse a dtype that cannot number so many.

    Raises:
        InvalidArgument: it cannot.
    """
    name = type(message).__name__
    if message.dtype not in INDICES:
        text = f"{name} draws indices of {' or '.join(sorted(INDICES))}, not {message.dtype}"
        raise InvalidArgument(text)
    if count - 1 > RANGES[message.dtype][1]:
        raise InvalidArgument(f"{name}: {message.dtype} cannot number {count}; draw int64")
