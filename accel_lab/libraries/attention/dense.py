"""Attention of queries to keys that lie in one array, and its gradients.

Arrays are (batch, heads, tokens, features). Keys and values may have fewer heads than queries: each
then serves several of these that follow each other (GQA, with one MQA).
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import OutOfBounds
from accel_lab.libraries.attention.message import (
    Attention,
    Causal,
    heads_of,
    require_dropout,
    require_lengths,
    require_mask,
    require_sink,
)
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import kind, named, one_dtype, result
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.dnn.message import computed_in, refusal, require_shape


class Attended(NamedTuple):
    """What attention makes.

    Attributes:
        y: (batch, heads, queries, features of a value).
        lse: on request the logarithm of each softmax's denominator, (batch, heads, queries).
    """

    y: AccelRef
    lse: AccelRef | None


class AttentionGradients(NamedTuple):
    """The gradients of attention by its operands.

    Attributes:
        q, k, v: by queries, keys and values.
        sink: on request by the sinks.
    """

    q: AccelRef
    k: AccelRef
    v: AccelRef
    sink: AccelRef | None


class Attend(Attention[Attended], frozen=True, tag=700):
    """Return softmax(scale q k^T) v, scaled by 1 / sqrt(features) unless told otherwise.

    With `causal` a query sees no key behind it: "top_left" puts query i beside key i,
    "bottom_right" the last query beside the last key. It then sees `window` keys, itself among
    them, or all (0). `alibi` adds 2**(-8 (h + 1) / heads) (j - i) to the score of head h, where i
    is the key beside the query. `lengths_q` and `lengths_k` say how many tokens each sequence has;
    what is behind them is not read, and made 0. `sink` has a score for each head that takes part in
    the softmax and has no value. Weights are dropped with a probability of `rate`: weight i of all,
    in C order, is kept if word `offset` + i of Philox's stream 0 of this seed is at least rate *
    2**32, the same ones on every backend. A query that sees no key is 0.
    """

    asked_by: ClassVar = {"lse": "lse"}
    q: AccelRef
    k: AccelRef
    v: AccelRef
    lengths_q: AccelRef | None = None
    lengths_k: AccelRef | None = None
    sink: AccelRef | None = None
    _: Options
    scale: Factor | None = None
    causal: Causal = "none"
    window: int = 0
    alibi: bool = False
    rate: Factor = 0.0
    seed: int = 0
    offset: int = 0
    lse: bool = False

    def infer(self) -> tuple[Spec, Spec | None]:
        """Return a value for each query, and on request its logarithm."""
        heads = require_options(self)
        shape = heads.batch, heads.heads, heads.queries
        y = result(self, (*shape, heads.value_width), self.q.dtype)
        return y, Spec(shape, computed_in(self.q.dtype)) if self.lse else None


class AttendGradient(Attention[AttentionGradients], frozen=True, tag=701):
    """Return the gradients of `Attend` by its operands, of that by its result `y`.

    `y` and `lse` are what it made of the same operands and options.
    """

    asked_by: ClassVar = {"sink": "sink_gradient"}
    q: AccelRef
    k: AccelRef
    v: AccelRef
    y: AccelRef
    lse: AccelRef
    dy: AccelRef
    lengths_q: AccelRef | None = None
    lengths_k: AccelRef | None = None
    sink: AccelRef | None = None
    _: Options
    scale: Factor | None = None
    causal: Causal = "none"
    window: int = 0
    alibi: bool = False
    rate: Factor = 0.0
    seed: int = 0
    offset: int = 0
    sink_gradient: bool = False

    def infer(self) -> tuple[Spec, Spec, Spec, Spec | None]:
        """Return the shapes of the operands."""
        heads = require_options(self)
        one_dtype(self, self.q, self.y, self.dy)
        shape = heads.batch, heads.heads, heads.queries
        for ref in (self.y, self.dy):
            require_shape(self, ref, (*shape, heads.value_width))
        require_shape(self, self.lse, shape)
        if self.lse.dtype != computed_in(self.q.dtype):
            text = f"{named(self, self.lse)}, and {computed_in(self.q.dtype)} is wanted"
            raise refusal(self, f"{text}: what attend(..., lse=True) makes")
        if self.sink_gradient and self.sink is None:
            raise refusal(self, "sink_gradient is True, and there is no sink")
        q, k, v = (Spec(ref.shape, ref.dtype) for ref in (self.q, self.k, self.v))
        return q, k, v, Spec((heads.heads,), self.q.dtype) if self.sink_gradient else None


def require_options(message: Any) -> Any:
    """Return the extents of a message's operands.

    Raises:
        InvalidArgument: an operand or an option does not fit.
    """
    heads = heads_of(message)
    require_lengths(message, heads.batch)
    require_sink(message)
    require_mask(message)
    require_dropout(message)
    return heads


def judged(message: Any, wrong: Any) -> OutOfBounds | None:
    """Return the error of lengths beyond a range; None if there are none.

    Parameters:
        wrong: how many of `lengths_q` and of `lengths_k` are.
    """
    for name, ref, count in zip(("q", "k"), (message.q, message.k), np.asarray(wrong), strict=True):
        if count:
            text = f"{kind(message)}: {count} of lengths_{name} are not from 0 to {ref.shape[2]}"
            return OutOfBounds(f"{text}, the tokens of {name}")
    return None


attend = function(Attend)
attend_gradient = function(AttendGradient)
