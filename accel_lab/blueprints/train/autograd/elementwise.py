"""Functions of each element, and their gradients.

An operand is a variable, a handle, a NumPy array or a number; shapes broadcast as NumPy's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from accel_lab.blueprints.train.autograd.variable import Pull, Variable, of, plain, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array


def summed_to(gradient: AccelRef, operand: Any) -> AccelRef:
    """Return a gradient summed over the axes along which its operand was broadcast."""
    shape = operand.shape
    if gradient.shape == shape:
        return gradient
    more = gradient.ndim - len(shape)
    axes = (*range(more), *(more + at for at, n in enumerate(shape) if n == 1))
    kept = tuple([at for at in axes if gradient.shape[at] != 1 or at < more])
    return gradient.sum(kept).reshape(shape) if kept else gradient.reshape(shape)


def _pull(operand: Any, factor: Callable[[AccelRef], AccelRef]) -> tuple[Any, Pull]:
    return operand, lambda dy: summed_to(factor(dy), operand)


def _sides(x: Any, y: Any) -> tuple[Any, Any]:
    """Return what messages take of two operands; a NumPy array is uploaded once."""
    a, b = plain(x), plain(y)
    if isinstance(a, np.ndarray):
        return plain_ref(b, "an operand").device.put(a), b
    return a, plain_ref(a, "an operand").device.put(b) if isinstance(b, np.ndarray) else b


def add(x: Any, y: Any) -> Variable:
    """Return x + y."""
    a, b = _sides(x, y)
    return of(a + b, (_pull(x, lambda dy: dy), _pull(y, lambda dy: dy)))


def subtract(x: Any, y: Any) -> Variable:
    """Return x - y."""
    a, b = _sides(x, y)
    return of(a - b, (_pull(x, lambda dy: dy), _pull(y, lambda dy: -dy)))


def multiply(x: Any, y: Any) -> Variable:
    """Return x * y."""
    a, b = _sides(x, y)
    return of(a * b, (_pull(x, lambda dy: dy * b), _pull(y, lambda dy: dy * a)))


def divide(x: Any, y: Any) -> Variable:
    """Return x / y."""
    a, b = _sides(x, y)
    made = a / b
    return of(made, (_pull(x, lambda dy: dy / b), _pull(y, lambda dy: -dy * made / b)))


def power(x: Any, y: Any) -> Variable:
    """Return x to the power of y; the gradient by y is 0 where x is 0."""
    a, b = _sides(x, y)
    made = a**b

    def by_exponent(dy: AccelRef) -> AccelRef:
        base = a
        if not isinstance(a, AccelRef):
            base = array.full(made.device, made.shape, float(a), made.dtype)
        is_zero = array.equal(base, 0)
        logarithm = array.log(array.where(is_zero, 1, base))
        return dy * array.where(is_zero, 0, made * logarithm)

    def by_base(dy: AccelRef) -> AccelRef:
        if isinstance(b, AccelRef):
            return dy * array.where(array.equal(b, 0), 0, b * a ** (b - 1))
        return dy * (b * a ** (b - 1)) if b != 0 else dy * 0

    return of(made, (_pull(x, by_base), _pull(y, by_exponent)))


def negative(x: Any) -> Variable:
    """Return -x."""
    return of(-plain(x), ((x, lambda dy: -dy),))


def absolute(x: Any) -> Variable:
    """Return the absolute value; its gradient is 0 at 0."""
    a = plain(x)
    return of(abs(a), ((x, lambda dy: dy * array.sign(a)),))


def exp(x: Any) -> Variable:
    """Return e to the power of it."""
    made = array.exp(plain(x))
    return of(made, ((x, lambda dy: dy * made),))


def expm1(x: Any) -> Variable:
    """Return exp(x) - 1, exact near 0."""
    made = array.expm1(plain(x))
    return of(made, ((x, lambda dy: dy * (made + 1)),))


def log(x: Any) -> Variable:
    """Return the natural logarithm."""
    a = plain(x)
    return of(array.log(a), ((x, lambda dy: dy / a),))


def log1p(x: Any) -> Variable:
    """Return log(1 + x), exact near 0."""
    a = plain(x)
    return of(array.log1p(a), ((x, lambda dy: dy / (a + 1)),))


def sqrt(x: Any) -> Variable:
    """Return the square root."""
    made = array.sqrt(plain(x))
    return of(made, ((x, lambda dy: dy / (2 * made)),))


def square(x: Any) -> Variable:
    """Return the square."""
    a = plain(x)
    return of(array.square(a), ((x, lambda dy: dy * (2 * a)),))


def sin(x: Any) -> Variable:
    """Return the sine."""
    a = plain(x)
    return of(array.sin(a), ((x, lambda dy: dy * array.cos(a)),))


def cos(x: Any) -> Variable:
    """Return the cosine."""
    a = plain(x)
    return of(array.cos(a), ((x, lambda dy: -dy * array.sin(a)),))


def maximum(x: Any, y: Any) -> Variable:
    """Return the larger one; where they are equal each has half of the gradient."""
    return _extreme(array.maximum, array.greater, x, y)


def minimum(x: Any, y: Any) -> Variable:
    """Return the smaller one; where they are equal each has half of the gradient."""
    return _extreme(array.minimum, array.less, x, y)


def _extreme(function: Any, before: Any, x: Any, y: Any) -> Variable:
    a, b = _sides(x, y)

    def share(dy: AccelRef, one: Any, other: Any) -> AccelRef:
        half = array.where(array.equal(a, b), dy / 2, 0)
        return array.where(before(one, other), dy, half)

    return of(
        function(a, b),
        (_pull(x, lambda dy: share(dy, a, b)), _pull(y, lambda dy: share(dy, b, a))),
    )


def clip(x: Any, least: float, most: float) -> Variable:
    """Return the elements, those outside as the nearest bound, which has no gradient."""
    a = plain(x)

    def pull(dy: AccelRef) -> AccelRef:
        inside = array.logical_and(array.greater_equal(a, least), array.less_equal(a, most))
        return array.where(inside, dy, 0)

    return of(array.clip(a, least, most), ((x, pull),))


def where(condition: AccelRef, x: Any, y: Any) -> Variable:
    """Return elements of `x` where `condition` is not zero, else of `y`."""
    at = plain_ref(condition, "where: condition")
    return of(
        array.where(at, plain(x), plain(y)),
        (
            _pull(x, lambda dy: array.where(at, dy, 0)),
            _pull(y, lambda dy: array.where(at, 0, dy)),
        ),
    )
