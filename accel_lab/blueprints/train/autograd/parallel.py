"""Layers whose weights are cut among ranks, as Megatron has them, and their gradients.

A column shard has some outputs of a linear layer, a row shard some inputs. What comes of a column
shard is of its rank alone; a row shard's results are summed over the ranks. Outside of a trainer
that cuts weights there is one rank, which has all of them.

Shoeybi and others, "Megatron-LM: training multi-billion parameter language models using model
parallelism", 2019. With `sequence`, what lies between these layers is cut along the places of a
text: Korthikanti and others, "Reducing activation recomputation in large transformer models", 2022.
"""

from collections.abc import Callable, Iterator
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

    def reduce_scatter(self, x: AccelRef) -> AccelRef:
        """Return a rank's part, along axis 0, of the sum of what all ranks give; waits for them."""


_line: ContextVar[Line | None] = ContextVar("line", default=None)


@contextmanager
def on_line(line: Line) -> Iterator[None]:
    """Have what is computed in the block be a rank's."""
    token = _line.set(line)
    try:
        yield
    finally:
        _line.reset(token)


def copied(x: Any, *, gather: int | None = None) -> Variable:
    """Return `x`, which all ranks have; its gradient is the sum of theirs.

    A parameter that a layer uses with a part of the places, such as a norm's, is given as this.

    Parameters:
        gather: an axis along which each rank has a part of `x`, and gets the whole.
    """
    a, line = plain_ref(x, "copied: x"), _line.get()
    if line is None:
        return of(a, ((x, lambda dy: dy),))
    if gather is None:
        return of(a, ((x, line.all_reduce),))
    at, here = _axis("copied: gather", gather, a), line
    return of(_gather(here, a, at), ((x, lambda dy: _scatter(here, dy, at)),))


def summed(x: Any, *, scatter: int | None = None) -> Variable:
    """Return the sum of what the ranks have, on each of them.

    Parameters:
        scatter: an axis along which each rank gets its part of the sum, as far as it goes evenly.
    """
    a, line = plain_ref(x, "summed: x"), _line.get()
    if line is None:
        return of(a, ((x, lambda dy: dy),))
    if scatter is None:
        return of(line.all_reduce(a), ((x, lambda dy: dy),))
    at, here = _even("summed: scatter", scatter, a, line), line
    return of(_scatter(here, a, at), ((x, lambda dy: _gather(here, dy, at)),))


def gathered(x: Any, axis: int = -1) -> Variable:
    """Return what the ranks have, joined along an axis, on each of them."""
    a, line = plain_ref(x, "gathered: x"), _line.get()
    if line is None:
        return of(a, ((x, lambda dy: dy),))
    at, here = _axis("gathered: axis", axis, a), line
    index = _part(here, at, a.shape[at])
    return of(_gather(here, a, at), ((x, lambda dy: dy[index]),))


def scattered(x: Any, axis: int = -1) -> Variable:
    """Return a rank's part, along an axis, of what all ranks have; `gathered` joins the parts."""
    a, line = plain_ref(x, "scattered: x"), _line.get()
    if line is None:
        return of(a, ((x, lambda dy: dy),))
    at, here = _even("scattered: axis", axis, a, line), line
    index = _part(here, at, a.shape[at] // here.size)
    return of(a[index], ((x, lambda dy: _gather(here, dy, at)),))


def column_linear(
    x: Any, weight: Any, bias: Any = None, *, gather: bool = False, sequence: int | None = None
) -> Variable:
    """Return a linear layer's outputs, of which each rank has some.

    `weight` and `bias` are cut along axis 0, and `x` is the same on all ranks.

    Parameters:
        gather: whether all ranks get all outputs.
        sequence: an axis of `x` along which each rank has a part of it, the places of a text.
    """
    made = linear(copied(x, gather=sequence), weight, bias)
    return gathered(made) if gather else made


def row_linear(x: Any, weight: Any, bias: Any = None, *, sequence: int | None = None) -> Variable:
    """Return a linear layer's outputs on all ranks, of inputs of which each rank has some.

    `weight` is cut along axis 1, and `bias` is whole; `x` is as `column_linear` returns it.

    Parameters:
        sequence: an axis of the result along which each rank gets a part of it.
    """
    made = summed(linear(x, weight), scatter=sequence)
    if bias is None:
        return made
    return add(made, bias if sequence is None else copied(bias))


def self_attention(
    x: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    *,
    heads: int,
    causal: bool = False,
    sequence: int | None = None,
) -> Variable:
    """Return attention of several heads, of which each rank has some, of x (..., places, features).

    `query`, `key` and `value` are weights (features, features) cut along axis 0, and `out` is one
    cut along axis 1.

    Parameters:
        heads: how many there are on all ranks together.
        causal: whether no place looks at those behind it.
        sequence: the axis of places, where each rank has a part of them, and gets one.

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
    given = copied(x, gather=sequence)
    features = w.shape[0]
    shape = (*given.shape[:-1], own, features // own)
    axes = (*range(len(shape) - 3), len(shape) - 2, len(shape) - 3, len(shape) - 1)
    q, k, v = (transpose(reshape(linear(given, one), shape), axes) for one in (query, key, value))
    looked = transpose(attention(q, k, v, causal=causal), axes)
    return row_linear(reshape(looked, (*shape[:-2], features)), out, sequence=sequence)


def _axis(what: str, axis: int, x: AccelRef) -> int:
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        raise InvalidArgument(f"{what} is {axis!r}, and x is {x.label}")
    return axis % x.ndim


def _even(what: str, axis: int, x: AccelRef, line: Line) -> int:
    at = _axis(what, axis, x)
    if x.shape[at] % line.size:
        text = f"{what} is {axis}, and x is {x.label}; it goes to {line.size} ranks in equal parts"
        raise InvalidArgument(text)
    return at


def _part(line: Line, axis: int, extent: int) -> tuple[slice, ...]:
    start = line.rank * extent
    return (slice(None),) * axis + (slice(start, start + extent),)


def _gather(line: Line, x: AccelRef, axis: int) -> AccelRef:
    return _in_front(line.all_gather, x, axis)


def _scatter(line: Line, x: AccelRef, axis: int) -> AccelRef:
    return _in_front(line.reduce_scatter, x, axis)


def _in_front(exchange: Callable[[AccelRef], AccelRef], x: AccelRef, axis: int) -> AccelRef:
    """Exchange with an axis in front, where the ranks' parts lie one behind the other."""
    if not axis:
        return exchange(x)
    order = (axis, *(one for one in range(x.ndim) if one != axis))
    back = (*range(1, axis + 1), 0, *range(axis + 1, x.ndim))
    return exchange(x.transpose(order)).transpose(back)
