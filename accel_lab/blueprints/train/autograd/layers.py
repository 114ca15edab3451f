"""Layers of `dnn` and their gradients: convolutions, pooling, activations, embeddings, dropout."""

from collections.abc import Callable
from typing import Any

from accel_lab.blueprints.train.autograd.elementwise import add
from accel_lab.blueprints.train.autograd.variable import Variable, of, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import dnn


def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int = 1,
) -> Variable:
    """Convolve (batch, channels, extents...) with filters, as `dnn.conv`, and add a bias."""
    a, w = plain_ref(x, "conv: x"), plain_ref(weight, "conv: weight")
    options = {"padding": padding, "stride": stride, "dilation": dilation, "groups": groups}
    extents, window = a.shape[2:], w.shape[2:]
    made = of(
        dnn.conv(a, w, **options),
        (
            (x, lambda dy: dnn.conv_data_gradient(dy, w, extents, **options)),
            (weight, lambda dy: dnn.conv_filter_gradient(a, dy, window, **options)),
        ),
    )
    return made if bias is None else _with_bias(made, bias)


def conv_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    extra: Any = 0,
    groups: int = 1,
) -> Variable:
    """Convolve transposed, as `dnn.conv_transpose`, and add a bias."""
    a, w = plain_ref(x, "conv_transpose: x"), plain_ref(weight, "conv_transpose: weight")
    options = {"padding": padding, "stride": stride, "dilation": dilation, "groups": groups}
    window = w.shape[2:]
    made = of(
        dnn.conv_transpose(a, w, extra=extra, **options),
        (
            (x, lambda dy: dnn.conv(dy, w, **options)),
            (weight, lambda dy: dnn.conv_filter_gradient(dy, a, window, **options)),
        ),
    )
    return made if bias is None else _with_bias(made, bias)


def _with_bias(made: Variable, bias: Any) -> Variable:
    """Add a number to each channel."""
    b = plain_ref(bias, "conv: bias")
    shape = (-1, *(1,) * (made.ndim - 2))
    return add(made, of(b.reshape(shape), ((bias, lambda dy: dy.reshape(-1)),)))


def max_pool(
    x: Any, window: Any, *, stride: Any = (), padding: Any = 0, dilation: Any = 1
) -> Variable:
    """Return the maximum of each window; all of the gradient goes to the first one."""
    a = plain_ref(x, "max_pool: x")
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return of(
        dnn.max_pool(a, window, **options),
        ((x, lambda dy: dnn.max_pool_gradient(a, dy, window, **options)),),
    )


def average_pool(
    x: Any, window: Any, *, stride: Any = (), padding: Any = 0, count_padding: bool = True
) -> Variable:
    """Return the average of each window."""
    a = plain_ref(x, "average_pool: x")
    options = {"stride": stride, "padding": padding, "count_padding": count_padding}
    extents = a.shape[2:]
    return of(
        dnn.average_pool(a, window, **options),
        ((x, lambda dy: dnn.average_pool_gradient(dy, extents, window, **options)),),
    )


def activate(x: Any, op: Any, *, alpha: float | None = None) -> Variable:
    """Return a function of each element, as `dnn.activate`."""
    a = plain_ref(x, "activate: x")
    return of(
        dnn.activate(a, op, alpha=alpha),
        ((x, lambda dy: dnn.activate_gradient(a, dy, op, alpha=alpha)),),
    )


def _named(op: str, help_: str) -> Callable[[Any], Variable]:
    def one(x: Any) -> Variable:
        return activate(x, op)

    one.__name__ = one.__qualname__ = op
    one.__doc__ = help_
    return one


relu = _named("relu", "Return max(x, 0).")
sigmoid = _named("sigmoid", "Return 1 / (1 + exp(-x)).")
tanh = _named("tanh", "Return the hyperbolic tangent.")
elu = _named("elu", "Return x, and exp(x) - 1 where it is below 0.")
gelu = _named("gelu", "Return x times the normal distribution's integral up to it.")
gelu_tanh = _named("gelu_tanh", "Return gelu by a hyperbolic tangent.")
swish = _named("swish", "Return x sigmoid(x).")
softplus = _named("softplus", "Return log(1 + exp(x)).")


def softmax(x: Any, axis: int = -1) -> Variable:
    """Return exp(x) over its sum along an axis."""
    y = dnn.softmax(plain_ref(x, "softmax: x"), axis)
    return of(y, ((x, lambda dy: dnn.softmax_gradient(y, dy, axis)),))


def log_softmax(x: Any, axis: int = -1) -> Variable:
    """Return the logarithm of softmax."""
    y = dnn.log_softmax(plain_ref(x, "log_softmax: x"), axis)
    return of(y, ((x, lambda dy: dnn.log_softmax_gradient(y, dy, axis)),))


def embedding(table: Any, indices: AccelRef) -> Variable:
    """Return the row of a table for each index."""
    rows, at = plain_ref(table, "embedding: table"), plain_ref(indices, "embedding: indices")
    made, count = dnn.embedding(rows, at), rows.shape[0]
    return of(made, ((table, lambda dy: dnn.embedding_gradient(dy, at, count)),))


def dropout(x: Any, rate: float, seed: int, *, offset: int = 0) -> Variable:
    """Set elements to 0 with a probability of `rate`, and divide the others by 1 - rate.

    Element i is kept by word `offset` + i of the seed's stream, the same on every backend.
    """
    a = plain_ref(x, "dropout: x")
    return of(
        dnn.dropout(a, rate, seed, offset=offset),
        ((x, lambda dy: dnn.dropout(dy, rate, seed, offset=offset)),),
    )
