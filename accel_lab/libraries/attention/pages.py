"""Messages of a cache of keys and values: pages that sequences share until one goes its own way.

Kwon et al., Efficient Memory Management for Large Language Model Serving with PagedAttention
(2023).
"""

from typing import Any, ClassVar

from accel_lab.compute.arrays.dtypes import canonical
from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import AccelError
from accel_lab.libraries.attention.dense import Attended
from accel_lab.libraries.attention.message import (
    MOST_FEATURES,
    require_axes,
    require_sink,
    require_window,
)
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import named, one_dtype
from accel_lab.libraries.authoring.options import DType, Factor, Ints, Options
from accel_lab.libraries.dnn.message import (
    computed_in,
    of_ints,
    refusal,
    require_int,
    require_shape,
)

_MOST = 2**31 - 1
_CHOSEN = "which pages it uses is decided when it is sent"


class KVPages:
    """Pages of keys and values, as a device keeps them."""


class CacheFull(AccelError, fields=("needed", "free")):
    """A cache has not as many free pages as what is appended needs; it is as it was.

    Attributes:
        needed: pages that were to be filled.
        free: those that there are.
    """

    remedy = "Evict sequences, keep fewer of their tokens, or make a cache of more pages."
    needed: int
    free: int


class MakeCache(Operation[Handle[KVPages]], frozen=True, array_like=True, eq=False, tag=710):
    """Make an empty cache of `pages` pages, each of `page_size` tokens of so many heads."""

    library: ClassVar[str] = "attention"
    dtypes: ClassVar = REAL_FLOATS
    heads: int
    width: int
    pages: int
    _: Options
    page_size: int = 16
    dtype: DType = "float32"

    def infer(self) -> None:
        """Refuse extents that are none; what is made is no buffer."""
        require_int(self, "heads", 1, _MOST)
        require_int(self, "width", 1, MOST_FEATURES)
        require_int(self, "pages", 1, _MOST)
        require_int(self, "page_size", 1, _MOST)


class CacheAppend(Operation[None], frozen=True, array_like=True, eq=False, tag=711):
    """Append tokens to sequences of a cache, (sequences, heads, tokens, features) of each.

    A sequence that is not there begins. A page that another sequence has, too, is copied before it
    is written. Where pages are lacking it fails with `CacheFull`, and nothing is appended.
    """

    library: ClassVar[str] = "attention"
    dtypes: ClassVar = REAL_FLOATS
    written: ClassVar[str] = "cache"
    uncaptured: ClassVar[str] = _CHOSEN
    cache: Handle[KVPages]
    k: AccelRef
    v: AccelRef
    sequences: Ints = (0,)

    def infer(self) -> None:
        """Refuse keys and values that do not fit to each other, or to the sequences."""
        one_dtype(self, self.k, self.v)
        require_axes(self, self.k)
        require_shape(self, self.v, self.k.shape)
        require_batch(self, self.k)


class CacheAttend(Operation[Attended], frozen=True, array_like=True, eq=False, tag=712):
    """Return the attention of queries, the last tokens of their sequences, to what a cache has.

    The last query is beside the last token, and none sees what is behind it. Options are those of
    `Attend`. One query decodes a token, several are a part of a prompt that was appended before.
    """

    library: ClassVar[str] = "attention"
    dtypes: ClassVar = REAL_FLOATS
    asked_by: ClassVar = {"lse": "lse"}
    uncaptured: ClassVar[str] = _CHOSEN
    cache: Handle[KVPages]
    q: AccelRef
    sequences: Ints = (0,)
    sink: AccelRef | None = None
    _: Options
    scale: Factor | None = None
    window: int = 0
    alibi: bool = False
    lse: bool = False

    def infer(self) -> tuple[Spec, Spec | None]:
        """Return the shape of the queries."""
        require_axes(self, self.q)
        require_batch(self, self.q)
        require_sink(self)
        require_window(self)
        made = Spec(self.q.shape, self.q.dtype)
        return made, Spec(self.q.shape[:3], computed_in(self.q.dtype)) if self.lse else None


class CacheFork(Operation[None], frozen=True, array_like=True, eq=False, tag=713):
    """Begin sequences with all tokens of another one, whose pages they share."""

    library: ClassVar[str] = "attention"
    dtypes: ClassVar = frozenset({""})
    written: ClassVar[str] = "cache"
    uncaptured: ClassVar[str] = _CHOSEN
    cache: Handle[KVPages]
    of: int
    to: Ints

    def infer(self) -> None:
        """Refuse what is no number of a sequence."""
        require_int(self, "of", 0, _MOST)
        require_sequences(self, "to")


class CacheEvict(Operation[None], frozen=True, array_like=True, eq=False, tag=714):
    """Free the pages of sequences, and forget these; or keep those of their last tokens.

    With `keep` a sequence keeps the pages in which its last so many tokens lie, and goes on: what a
    window does not see any more need not be stored.
    """

    library: ClassVar[str] = "attention"
    dtypes: ClassVar = frozenset({""})
    written: ClassVar[str] = "cache"
    uncaptured: ClassVar[str] = _CHOSEN
    cache: Handle[KVPages]
    sequences: Ints
    _: Options
    keep: int = 0

    def infer(self) -> None:
        """Refuse what is no number of a sequence, or of tokens."""
        require_sequences(self, "sequences")
        require_int(self, "keep", 0)


class CacheStatistics(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=715):
    """Count a cache's pages, those free, those that are shared, its sequences, and their tokens."""

    library: ClassVar[str] = "attention"
    dtypes: ClassVar = frozenset({""})
    uncaptured: ClassVar[str] = _CHOSEN
    cache: Handle[KVPages]

    def infer(self) -> Spec:
        """Return five counts."""
        return Spec((5,), "int64")


def require_batch(message: Any, ref: AccelRef) -> None:
    """Refuse an array that has not one entry for each sequence.

    Raises:
        InvalidArgument: it has not, or the sequences are none.
    """
    count = len(require_sequences(message, "sequences"))
    if ref.shape[0] != count:
        text = f"{named(message, ref)}, and sequences are {list(message.sequences)}"
        raise refusal(message, f"{text}: one entry for each of {count} is wanted")


def require_sequences(message: Any, name: str) -> tuple[int, ...]:
    """Return an option of numbers of sequences, which are any from 0, each once.

    Raises:
        InvalidArgument: they are none.
    """
    numbers = of_ints(message, name)
    if len(set(numbers)) < len(numbers) or any(not 0 <= n <= _MOST for n in numbers):
        text = f"{name} are {list(numbers)}; they are different integers from 0"
        raise refusal(message, text)
    return numbers


def require_stored(
    message: Any, ref: AccelRef, heads: int, width: int, dtype: str, *, several: bool = False
) -> None:
    """Refuse an array that is not of what a cache stores.

    Parameters:
        several: whether each head of the cache may serve several of the array.

    Raises:
        InvalidArgument: it has another dtype, number of heads, or of features.
    """
    fits = ref.shape[1] and not ref.shape[1] % heads if several else ref.shape[1] == heads
    if not fits or ref.shape[3] != width or ref.dtype != dtype:
        stored = f"{dtype} of {heads} heads of {width} features"
        raise refusal(message, f"{named(message, ref)}, and the cache stores {stored}")


def make_cache(
    device: Device,
    heads: int,
    width: int,
    pages: int,
    *,
    page_size: int = 16,
    dtype: Any = "float32",
) -> Handle[KVPages]:
    """Make an empty cache on a device, as `MakeCache`; `KVCache` has the methods for it.

    Raises:
        InvalidArgument: no device, or an extent that is none.
    """
    message = MakeCache(heads, width, pages, page_size=page_size, dtype=canonical(dtype))
    return device_first(device).ask(message)


cache_append = function(CacheAppend)
cache_attend = function(CacheAttend)
cache_fork = function(CacheFork)
cache_evict = function(CacheEvict)
cache_statistics = function(CacheStatistics)
