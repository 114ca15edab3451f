"""Reductions along axes, and their gradients."""

# ruff: noqa: A001 - NumPy's names

import builtins
import math
from typing import Any

from accel_lab.blueprints.train.autograd.elementwise import square, subtract
from accel_lab.blueprints.train.autograd.variable import Variable, of, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array


def sum(x: Any, axis: Any = None, *, keepdims: bool = False) -> Variable:
    """Return the sum along an axis, several, or all of them."""
    a = plain_ref(x, "sum: x")
    shape, left = a.shape, _kept(a, axis)

    def pull(dy: AccelRef) -> AccelRef:
        return _spread(dy.reshape(left), shape)

    return of(a.sum(axis, keepdims=keepdims), ((x, pull),))


def mean(x: Any, axis: Any = None, *, keepdims: bool = False) -> Variable:
    """Return the mean along an axis, several, or all of them."""
    a = plain_ref(x, "mean: x")
    shape, left = a.shape, _kept(a, axis)
    count = a.size // builtins.max(math.prod(left), 1)

    def pull(dy: AccelRef) -> AccelRef:
        return _spread((dy / count).reshape(left), shape)

    return of(a.mean(axis, keepdims=keepdims), ((x, pull),))


def var(x: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Variable:
    """Return the variance, by n - ddof along an axis, several, or all of them."""
    a = plain_ref(x, "var: x")
    count = a.size // builtins.max(math.prod(_kept(a, axis)), 1)
    squares = square(subtract(x, mean(x, axis, keepdims=True)))
    return sum(squares, axis, keepdims=keepdims) / builtins.max(count - ddof, 0)


def max(x: Any, axis: Any = None, *, keepdims: bool = False) -> Variable:
    """Return the largest elements along an axis; equal ones share the gradient alike."""
    return _extreme("max", x, axis, keepdims=keepdims)


def min(x: Any, axis: Any = None, *, keepdims: bool = False) -> Variable:
    """Return the smallest elements along an axis; equal ones share the gradient alike."""
    return _extreme("min", x, axis, keepdims=keepdims)


def _extreme(op: Any, x: Any, axis: Any, *, keepdims: bool) -> Variable:
    a = plain_ref(x, f"{op}: x")
    left = _kept(a, axis)
    made = array.reduce(op, a, axis, keepdims=keepdims)

    def pull(dy: AccelRef) -> AccelRef:
        is_it = array.equal(a, made.reshape(left)).astype(a.dtype)
        return is_it * (dy.reshape(left) / is_it.sum(axis, keepdims=True))

    return of(made, ((x, pull),))


def _kept(a: AccelRef, axis: Any) -> tuple[int, ...]:
    """Return the shape that is left, with axes of one element."""
    if axis is None:
        return (1,) * a.ndim
    axes = {
        one % builtins.max(a.ndim, 1)
        for one in (axis if isinstance(axis, tuple | list) else (axis,))
    }
    return tuple([1 if at in axes else n for at, n in enumerate(a.shape)])


def _spread(dy: AccelRef, shape: tuple[int, ...]) -> AccelRef:
    """Return it broadcast to a shape, in memory of its own."""
    return dy if dy.shape == shape else dy + array.zeros(dy.device, shape, dy.dtype)
