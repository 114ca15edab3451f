"""Layers whose weights are cut among ranks, as Megatron has them, and their gradients.

A column shard has some outputs of a linear layer, a row shard some inputs. What comes of a column
shard is of its rank alone; a row shard's results are summed over the ranks. Outside of a trainer
that cuts weights there is one rank, which has all of them.

Shoeybi and others, "Megatron-LM: training multi-billion parameter language models using model
parallelism", 2019.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from accel_lab.blueprints.train.autograd.elementwise import add
from accel_lab.blueprints.train.autograd.products import attention, linear
from accel_lab.blueprints.train.autograd.shaping import reshape, transpose
from accel_lab.blueprints.train.autograd.variable import Variable, of, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument


class Line(Protocol):
    """One of several ranks that compute the same loss, each with its shards.

    Attributes:
        rank: which one, from 0.
        size: how many there are.
    """

    rank: int
    size: int

    def all_reduce(self, x: AccelRef) -> AccelRef:
        """Return the sum of what all ranks give here; waits for them."""

    def all_gather(self, x: AccelRef) -> AccelRef:
        """Return what all ranks give here, joined along axis 0; waits for them."""


_line: ContextVar[Line | None] = ContextVar("line", default=None)


@contextmanager
def on_line(line: Line) -> Iterator[None]:
    """Have what is computed in the block be a rank's."""
    token = _line.set(line)
    try:
        yield
    finally:
        _line.reset(token)


def copied(x: Any) -> Variable:
    """Return `x`, which all ranks have; its gradient is the sum of theirs."""
    a, line = plain_ref(x, "copied: x"), _line.get()
    return of(a, ((x, lambda dy: dy if line is None else line.all_reduce(dy)),))


def summed(x: Any) -> Variable:
    """Return the sum of what the ranks have, on each of them."""
    a, line = plain_ref(x, "summed: x"), _line.get()
    return of(a if line is None else line.all_reduce(a), ((x, lambda dy: dy),))


def gathered(x: Any, axis: int = -1) -> Variable:
    """Return what the ranks have, joined along an axis, on each of them."""
    a, line = plain_ref(x, "gathered: x"), _line.get()
    if line is None:
        return of(a, ((x, lambda dy: dy),))
    if not -a.ndim <= axis < a.ndim:
        raise InvalidArgument(f"gathered: axis is {axis}, and x is {a.label}")
    at, here = axis % a.ndim, line
    order = (at, *(one for one in range(a.ndim) if one != at))
    back = (*range(1, at + 1), 0, *range(at + 1, a.ndim))
    start = here.rank * a.shape[at]
    index = (slice(None),) * at + (slice(start, start + a.shape[at]),)
    made = here.all_gather(a.transpose(order)).transpose(back)
    return of(made, ((x, lambda dy: dy[index]),))


def column_linear(x: Any, weight: Any, bias: Any = None, *, gather: bool = False) -> Variable:
    """Return a linear layer's outputs, of which each rank has some.

    `weight` and `bias` are cut along axis 0, and `x` is the same on all ranks.

    Parameters:
        gather: whether all ranks get all outputs.
    """
    made = linear(copied(x), weight, bias)
    return gathered(made) if gather else made


def row_linear(x: Any, weight: Any, bias: Any = None) -> Variable:
    """Return a linear layer's outputs on all ranks, of inputs of which each rank has some.

    `weight` is cut along axis 1, and `bias` is whole; `x` is as `column_linear` returns it.
    """
    made = summed(linear(x, weight))
    return made if bias is None else add(made, bias)


def self_attention(
    x: Any, query: Any, key: Any, value: Any, out: Any, *, heads: int, causal: bool = False
) -> Variable:
    """Return attention of several heads, of which each rank has some, of x (..., places, features).

    `query`, `key` and `value` are weights (features, features) cut along axis 0, and `out` is one
    cut along axis 1.

    Parameters:
        heads: how many there are on all ranks together.
        causal: whether no place looks at those behind it.

    Raises:
        InvalidArgument: the heads cannot be shared out evenly.
    """
    line = _line.get()
    ranks = 1 if line is None else line.size
    w = plain_ref(query, "self_attention: query")
    own = heads // ranks if type(heads) is int else 0
    if own < 1 or own * ranks != heads or w.shape[0] % own:
        text = f"heads is {heads!r}, query {w.label} and there are {ranks} ranks"
        raise InvalidArgument(f"self_attention: {text}; each rank has as many heads, of one extent")
    given = copied(x)
    features = w.shape[0]
    shape = (*given.shape[:-1], own, features // own)
    axes = (*range(len(shape) - 3), len(shape) - 2, len(shape) - 3, len(shape) - 1)
    q, k, v = (transpose(reshape(linear(given, one), shape), axes) for one in (query, key, value))
    looked = transpose(attention(q, k, v, causal=causal), axes)
    return row_linear(reshape(looked, (*shape[:-2], features)), out)
