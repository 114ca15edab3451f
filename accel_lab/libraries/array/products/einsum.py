"""Einstein summation, as products of two operands each: views, sums, `matmul` and `multiply`.

Of more than two operands `numpy.einsum_path` chooses the pairs, so that what is made in between is
small. Nothing has a message of its own: what BLAS has goes there.
"""

import math
from collections import Counter
from string import ascii_letters
from typing import NamedTuple

import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand, binary, device_among
from accel_lab.libraries.array.products.matmul import matmul
from accel_lab.libraries.array.reduction import reduce
from accel_lab.libraries.array.shaping import diagonal
from accel_lab.libraries.authoring.operand import describe

__all__ = ["einsum"]

PAIR = 2
_FIRST_OF_DOTS = 0x100
"""Axes at `...` are called by characters from here on, of which none is in the subscripts."""


class _Term(NamedTuple):
    """A buffer, and what each of its axes is called."""

    axes: str
    x: AccelRef


def einsum(subscripts: str, *operands: Operand) -> AccelRef:
    """Return sums of products of elements, over the axes that the result does not have.

    Does not block. `"ij,jk->ik"` is a product of matrices, `"ii->i"` a diagonal, `"...i,...i"` are
    inner products of what broadcasts. Without an arrow the result has the axes that are there once,
    in alphabetical order. NumPy arrays among the operands are uploaded.

    Raises:
        InvalidArgument: the subscripts are none, do not fit the operands, or no operand is a
            buffer.
    """
    if not isinstance(subscripts, str):
        raise InvalidArgument(f"einsum: subscripts are text, not a {type(subscripts).__name__}")
    device = device_among(*operands)
    refs = [x if isinstance(x, AccelRef) else device.put(np.asarray(x)) for x in operands]
    inputs, made = _parsed(subscripts, refs)
    extents = _extents(inputs, refs)
    common = _common({str(ref.dtype) for ref in refs})
    refs = [ref if ref.dtype == common else ref.astype(common) for ref in refs]
    terms = [_spread(_Term(*pair), extents) for pair in zip(inputs, refs, strict=True)]
    for together in _path(terms, made):
        chosen = [terms.pop(at) for at in sorted(together, reverse=True)]
        while len(chosen) > 1:
            one, other = chosen.pop(), chosen.pop()
            kept = {*made}.union(*(term.axes for term in (*terms, *chosen)))
            pair = _summed(one, kept.union(other.axes)), _summed(other, kept.union(one.axes))
            chosen.append(_product(*pair, kept))
        terms += chosen
    (last,) = terms
    last = _summed(last, {*made})
    if last.axes == made and not any(last.x is x for x in refs):
        return last.x
    return last.x.transpose([last.axes.index(axis) for axis in made])


def _parsed(subscripts: str, refs: list[AccelRef]) -> tuple[list[str], str]:
    """Return the axes of each operand and of the result, with a character for each.

    Raises:
        InvalidArgument: they are none.
    """
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(refs):
        text = f"einsum: {subscripts!r} is of {len(inputs)} operands, not of {len(refs)}"
        raise InvalidArgument(text)
    for text in (*inputs, right):
        named = text.replace("...", "", 1)
        if not all(axis.isascii() and axis.isalpha() for axis in named):
            raise InvalidArgument(f"einsum: {subscripts!r} has in {text!r} other than letters")
    wide = [
        ref.ndim - len(text.replace("...", "")) if "..." in text else 0
        for text, ref in zip(inputs, refs, strict=True)
    ]
    for text, ref, more in zip(inputs, refs, wide, strict=True):
        if more < 0 or ("..." not in text and len(text) != ref.ndim):
            raise InvalidArgument(f"einsum: {text!r} are not the axes of {describe(ref)}")
    dots = "".join(chr(_FIRST_OF_DOTS + at) for at in range(max(wide, default=0)))
    whole = [
        text.replace("...", dots[len(dots) - more :])
        for text, more in zip(inputs, wide, strict=True)
    ]
    if not arrow:
        once = Counter(left.replace(",", "").replace("...", ""))
        return whole, dots + "".join(sorted(axis for axis, times in once.items() if times == 1))
    made = right.replace("...", dots)
    if len({*made}) < len(made) or not {*made} <= {*"".join(whole)}:
        raise InvalidArgument(f"einsum: {right!r} has an axis twice, or one that no operand has")
    if dots and "..." not in right:
        raise InvalidArgument(f"einsum: {subscripts!r} has ... in operands, and not in the result")
    return whole, made


def _extents(inputs: list[str], refs: list[AccelRef]) -> dict[str, int]:
    """Return how long each axis is; an operand with one element along it broadcasts.

    Raises:
        InvalidArgument: it is of two lengths.
    """
    extents: dict[str, int] = {}
    for text, ref in zip(inputs, refs, strict=True):
        own = dict(zip(text, ref.shape, strict=True))
        for axis, extent in zip(text, ref.shape, strict=True):
            known = extents.get(axis, 1)
            if own[axis] != extent:
                raise InvalidArgument(f"einsum: axis {axis} of {describe(ref)} has two lengths")
            if known != extent and 1 not in (known, extent):
                name = axis if axis.isascii() else "..."
                raise InvalidArgument(
                    f"einsum: axis {name} of {describe(ref)} has {extent} elements, and {known} of "
                    "another operand"
                )
            extents[axis] = extent if known == 1 else known
    return extents


def _common(dtypes: set[str]) -> str:
    """Return the dtype in which operands are multiplied.

    Raises:
        InvalidArgument: they have none.
    """
    try:
        return canonical(np.result_type(*map(numpy_dtype, sorted(dtypes))))
    except TypeError:
        texts = " and ".join(sorted(dtypes))
        text = f"einsum: {texts} have no dtype in common; convert with array.cast"
        raise InvalidArgument(text) from None


def _path(terms: list[_Term], made: str) -> list[tuple[int, ...]]:
    """Return which terms are multiplied, a step behind the other; what is made stands last."""
    axes = sorted({*made}.union(*(term.axes for term in terms)))
    if len(terms) <= PAIR or len(axes) > len(ascii_letters):
        return [tuple(range(len(terms)))]
    names = str.maketrans(dict(zip(axes, ascii_letters, strict=False)))
    text = f"{','.join(term.axes for term in terms)}->{made}".translate(names)
    # Arrays of one element each, whatever their shape.
    path, _ = np.einsum_path(text, *(np.broadcast_to(0.0, term.x.shape) for term in terms))
    steps: list[tuple[int, ...]] = path[1:]  # behind its name
    return steps


def _spread(term: _Term, extents: dict[str, int]) -> _Term:
    """Return a term with every axis once, without those of one element that broadcast."""
    axes, x = term
    for axis, times in Counter(axes).items():
        for _ in range(times - 1):
            one, other, *_ = (at for at, name in enumerate(axes) if name == axis)
            x = diagonal(x, 0, one, other)
            axes = axes[:one] + axes[one + 1 : other] + axes[other + 1 :] + axis
    narrow = [at for at, axis in enumerate(axes) if x.shape[at] != extents[axis]]
    if not narrow:
        return _Term(axes, x)
    whole = tuple(0 if at in narrow else slice(None) for at in range(x.ndim))
    return _Term("".join(axis for at, axis in enumerate(axes) if at not in narrow), x[whole])


def _summed(term: _Term, kept: set[str]) -> _Term:
    """Return a term summed over the axes that nobody else has."""
    lone = tuple(at for at, axis in enumerate(term.axes) if axis not in kept)
    if not lone:
        return term
    left = "".join(axis for axis in term.axes if axis in kept)
    if term.x.dtype == "bool":
        return _Term(left, reduce("any", term.x, lone))
    return _Term(left, reduce("sum", term.x, lone, dtype=term.x.dtype))


def _product(a: _Term, b: _Term, kept: set[str]) -> _Term:
    """Return the product of two terms, summed over the axes of both that are not kept."""
    both = [axis for axis in a.axes if axis in b.axes]
    inner = [axis for axis in both if axis not in kept]
    batch = [axis for axis in both if axis in kept]
    rows = [axis for axis in a.axes if axis not in both]
    columns = [axis for axis in b.axes if axis not in both]
    made = "".join([*batch, *rows, *columns])
    left, right = _in_order(a, [*batch, *rows, *inner]), _in_order(b, [*batch, *inner, *columns])
    stack = left.shape[: len(batch)]
    if not inner:
        tall = left[(..., *[None] * len(columns))] if columns else left
        whole = (slice(None),) * len(batch)
        wide = right[(*whole, *[None] * len(rows), ...)] if rows else right
        return _Term(made, binary("multiply", tall, wide))
    m, k = left.shape[len(batch) : len(batch) + len(rows)], left.shape[len(batch) + len(rows) :]
    n = right.shape[len(batch) + len(inner) :]
    head = (math.prod(stack),) if batch else ()
    # Without rows and columns it is vectors that are multiplied, but a stack is one of matrices.
    one = _in_shape(left, (*head, *_one_axis(m, is_there=bool(rows or batch)), math.prod(k)))
    other = (*head, math.prod(k), *_one_axis(n, is_there=bool(columns or batch)))
    return _Term(made, _in_shape(matmul(one, _in_shape(right, other)), (*stack, *m, *n)))


def _in_order(term: _Term, axes: list[str]) -> AccelRef:
    """Return a term's buffer with its axes in this order."""
    order = [term.axes.index(axis) for axis in axes]
    return term.x if order == [*range(len(order))] else term.x.transpose(order)


def _in_shape(x: AccelRef, shape: tuple[int, ...]) -> AccelRef:
    return x if x.shape == shape else x.reshape(shape)


def _one_axis(extents: tuple[int, ...], *, is_there: bool) -> tuple[int, ...]:
    return (math.prod(extents),) if is_there else ()
