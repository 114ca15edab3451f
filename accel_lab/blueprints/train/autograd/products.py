"""Products of matrices, linear layers and attention, and their gradients."""

import math
from typing import Any

from accel_lab.blueprints.train.autograd.elementwise import add, multiply, summed_to
from accel_lab.blueprints.train.autograd.layers import softmax
from accel_lab.blueprints.train.autograd.shaping import transpose
from accel_lab.blueprints.train.autograd.variable import Variable, of, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array


def matmul(a: Any, b: Any) -> Variable:
    """Return a @ b as NumPy shapes it: matrices, stacks of them that broadcast, and vectors."""
    x, y = plain_ref(a, "matmul: a"), plain_ref(b, "matmul: b")
    rows, columns = x.ndim > 1, y.ndim > 1

    def wide(dy: AccelRef) -> AccelRef:
        """Return a gradient with the axes of which vectors have none."""
        shape = dy.shape
        if not columns:
            shape = (*shape, 1)
        if not rows:
            shape = (*shape[:-1], 1, shape[-1])
        return dy.reshape(shape)

    def by_a(dy: AccelRef) -> AccelRef:
        right = y.mT if columns else y.reshape((1, -1))
        made = wide(dy) @ right
        return summed_to(made if rows else made.reshape((*made.shape[:-2], made.shape[-1])), x)

    def by_b(dy: AccelRef) -> AccelRef:
        left = x.mT if rows else x.reshape((-1, 1))
        made = left @ wide(dy)
        return summed_to(made if columns else made.reshape(made.shape[:-1]), y)

    return of(x @ y, ((a, by_a), (b, by_b)))


def linear(x: Any, weight: Any, bias: Any = None) -> Variable:
    """Return x @ weight.T + bias: `weight` is (outputs, inputs), as PyTorch's."""
    a, w = plain_ref(x, "linear: x"), plain_ref(weight, "linear: weight")
    if a.ndim < 1 or w.ndim != 2 or a.shape[-1] != w.shape[1]:  # noqa: PLR2004 - a matrix
        text = f"x is {a.label} and weight {w.label}; weight is to be (outputs, inputs of x)"
        raise InvalidArgument(f"linear: {text}")
    flat = a.reshape((-1, a.shape[-1]))  # one product, not one for each of a stack
    outputs = w.shape[0]

    def rows(dy: AccelRef) -> AccelRef:
        return dy.reshape((-1, outputs))

    made = of(
        (flat @ w.T).reshape((*a.shape[:-1], outputs)),
        (
            (x, lambda dy: (rows(dy) @ w).reshape(a.shape)),
            (weight, lambda dy: rows(dy).T @ flat),
        ),
    )
    return made if bias is None else add(made, bias)


def attention(q: Any, k: Any, v: Any, mask: Any = None, *, causal: bool = False) -> Variable:
    """Return softmax(q k^T / sqrt(features) + mask) v, of (..., places, features).

    Parameters:
        mask: added to the scores, as -inf where nobody is to look.
        causal: whether no place looks at those behind it.

    Raises:
        InvalidArgument: the mask says yes and no.
    """
    if mask is not None and getattr(mask, "dtype", "") == "bool":
        text = "mask is of bool, and is added to the scores: 0 where to look, and -inf where not"
        raise InvalidArgument(f"attention: {text}")
    one, other = plain_ref(q, "attention: q"), plain_ref(k, "attention: k")
    axes = (*range(other.ndim - 2), other.ndim - 1, other.ndim - 2)
    scores = multiply(matmul(q, transpose(k, axes)), 1 / math.sqrt(one.shape[-1]))
    if mask is not None:
        scores = add(scores, mask)
    if causal:
        ones = array.full(one.device, (one.shape[-2], other.shape[-2]), 1.0, one.dtype)
        hidden = array.where(array.equal(array.tril(ones), 0), -math.inf, 0.0)
        scores = add(scores, hidden.astype(one.dtype))
    return matmul(softmax(scores), v)
