"""What the messages of attention have in common: heads, lengths, masks, and what is refused."""

import math
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.operand import named, one_dtype
from accel_lab.libraries.dnn.message import (
    Layer,
    refusal,
    require_choice,
    require_int,
    require_real,
    require_shape,
)

R = TypeVar("R")
Causal: TypeAlias = Literal["none", "top_left", "bottom_right"]
CAUSAL = ("none", "top_left", "bottom_right")
"""Which queries do not see the keys behind them: no ones; query i is beside key i; the last query
is beside the last key."""
LENGTHS = ("int32", "int64")
MOST_FEATURES = 256
_AXES = 4  # batch, heads, tokens, features


class Attention(Layer[R], frozen=True, array_like=True, eq=False):
    """A message of `attention`: of floats, computed in float32 at least and rounded once."""

    library: ClassVar[str] = "attention"


class Heads(NamedTuple):
    """The extents of queries, keys and values.

    Attributes:
        batch: how many sequences.
        heads: of the queries.
        shared: of keys and values; each serves as many heads of the queries.
        queries, keys: tokens.
        width: features of a query and of a key.
        value_width: features of a value.
    """

    batch: int
    heads: int
    shared: int
    queries: int
    keys: int
    width: int
    value_width: int


def heads_of(message: Any) -> Heads:
    """Return the extents of a message's `q`, `k` and `v`.

    Raises:
        InvalidArgument: they do not fit.
    """
    q, k, v = message.q, message.k, message.v
    one_dtype(message, q, k, v)
    for ref in (q, k, v):
        require_axes(message, ref)
    batch, heads, queries, width = q.shape
    shared, keys, value_width = k.shape[1], k.shape[2], v.shape[3]
    require_shape(message, k, (batch, shared, keys, width))
    require_shape(message, v, (batch, shared, keys, value_width))
    require_shares(message, q, shared)
    return Heads(batch, heads, shared, queries, keys, width, value_width)


def require_axes(message: Any, ref: AccelRef) -> None:
    """Refuse what is not (batch, heads, tokens, features), or has too many features.

    Raises:
        InvalidArgument: it is not, or has them.
    """
    if ref.ndim != _AXES:
        raise refusal(message, f"{named(message, ref)}; wanted is (batch, heads, tokens, features)")
    if not 1 <= ref.shape[3] <= MOST_FEATURES:
        raise refusal(message, f"{named(message, ref)}; a head has 1 to {MOST_FEATURES} features")


def require_shares(message: Any, q: AccelRef, shared: int) -> None:
    """Refuse heads that keys and values cannot be shared out to.

    Raises:
        InvalidArgument: they cannot.
    """
    if not shared or not q.shape[1] or q.shape[1] % shared:
        text = f"{named(message, q)}, and its heads are to be a multiple of"
        raise refusal(message, f"{text} the {shared} of keys and values")


def require_lengths(message: Any, batch: int) -> None:
    """Refuse lengths that are not one integer for each sequence.

    Raises:
        InvalidArgument: they are not.
    """
    for ref in (message.lengths_q, message.lengths_k):
        require_shape(message, ref, (batch,))
        if ref is not None and ref.dtype not in LENGTHS:
            text = f"{named(message, ref)}, and is to be of {' or '.join(LENGTHS)}"
            raise refusal(message, f"{text}; convert with array.cast")


def require_sink(message: Any) -> None:
    """Refuse sinks that are not a number for each head.

    Raises:
        InvalidArgument: they are not.
    """
    one_dtype(message, message.q, message.sink)
    require_shape(message, message.sink, (message.q.shape[1],))


def require_mask(message: Any) -> None:
    """Refuse a mask that there is not.

    Raises:
        InvalidArgument: there is none such.
    """
    require_choice(message, "causal", CAUSAL)
    require_window(message)
    if message.window and message.causal == "none":
        text = f"window is {message.window}, and causal is 'none'"
        raise refusal(message, f"{text}; a window ends at the query, so say where that is")


def require_window(message: Any) -> None:
    """Refuse a scale or a window that is none.

    Raises:
        InvalidArgument: it is none.
    """
    require_int(message, "window", 0)
    if message.scale is not None:
        require_real(message, "scale", -math.inf, math.inf)


def require_dropout(message: Any) -> None:
    """Refuse a rate, a seed or an offset that is none.

    Raises:
        InvalidArgument: it is none.
    """
    if require_real(message, "rate", 0.0, 1.0) == 1.0:
        raise refusal(message, "rate is 1; below it there is something left to keep")
    require_int(message, "seed", 0, 2**64 - 1)
    require_int(message, "offset", 0, 2**62)


def scale_of(message: Any, width: int) -> float:
    """Return what scores are multiplied with."""
    return float(width**-0.5 if message.scale is None else message.scale)
