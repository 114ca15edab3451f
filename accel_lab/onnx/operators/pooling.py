"""Pooling: `dnn` has what is even; all else is made of the elements of the windows."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from accel_lab.libraries.array import library as array
from accel_lab.libraries.dnn import library as dnn
from accel_lab.onnx.node import Call
from accel_lab.onnx.operators.convolution import MOST_EXTENTS, Slides, slides
from accel_lab.onnx.operators.indexing import combined
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import cast, dtype_of, is_floating, like


def _pooling(call: Call, x: Any) -> tuple[Slides, tuple[int, ...], tuple[int, ...]]:
    """Return how a window slides, at how many places, and what is padded for the last of these."""
    how = slides(call, tuple(call.get("kernel_shape")), x.shape[2:])
    places, beyond = [], []
    several = zip(
        x.shape[2:], how.window, how.strides, how.dilations, how.before, how.after, strict=True
    )
    for n, k, s, d, before, after in several:
        reach, extent = d * (k - 1) + 1, n + before + after
        count = (extent - reach) // s + 1
        if call.get("ceil_mode", 0):
            count = -(-(extent - reach) // s) + 1
            if (count - 1) * s >= n + before:  # the last one would begin in the padding
                count -= 1
        places.append(count)
        beyond.append(max(0, (count - 1) * s + reach - extent))
    return how, tuple(places), tuple(beyond)


def _is_plain(x: Any, how: Slides, beyond: tuple[int, ...]) -> bool:
    """Whether `dnn` pools so."""
    return (
        is_floating(x)
        and how.is_even
        and not any(beyond)
        and 1 <= len(how.window) <= MOST_EXTENTS
        and all(
            2 * p <= d * (k - 1) + 1
            for p, d, k in zip(how.before, how.dilations, how.window, strict=True)
        )
    )


def elements(
    x: Any, how: Slides, places: tuple[int, ...], beyond: tuple[int, ...], fill: Any
) -> Any:
    """Give each element of the window, at all places: a view of what is padded."""
    wide = replace(how, after=tuple(a + b for a, b in zip(how.after, beyond, strict=True)))
    padded = array.pad(x, wide.widths, constant_values=fill) if any(map(any, wide.widths)) else x
    for at in product(*map(range, how.window)):
        several = zip(at, places, how.strides, how.dilations, strict=True)
        yield (
            at,
            padded[(..., *[slice(i * d, i * d + (p - 1) * s + 1, s) for i, p, s, d in several])],
        )


@operator("MaxPool")
def max_pool(call: Call, x: Any) -> Any:
    """Return the maximum of each window, and on request where it is."""
    how, places, beyond = _pooling(call, x)
    if not call.wants(1) and _is_plain(x, how, beyond):
        return dnn.max_pool(
            x, how.window, stride=how.strides, padding=how.before, dilation=how.dilations
        )
    low = -math.inf if is_floating(x) else int(np.iinfo(dtype_of(x)).min)
    best: Any = None
    where: Any = None
    for at, one in elements(x, how, places, beyond, low):
        if best is None:
            best, where = one, _places_of(call, x, how, places, at)
        elif call.wants(1):
            is_more = array.greater(one, best)
            where = array.where(is_more, _places_of(call, x, how, places, at), where)
            best = array.where(is_more, one, best)
        else:
            best = array.maximum(best, one)
    if not call.wants(1):
        return best
    lines = np.arange(math.prod(x.shape[:2])).reshape((*x.shape[:2], *[1] * len(places)))
    return best, where + call.ref(lines * math.prod(x.shape[2:]))


def _places_of(
    call: Call, x: Any, how: Slides, places: tuple[int, ...], at: tuple[int, ...]
) -> Any:
    """Return where an element of the window lies in an image, at all places."""
    extents, total = x.shape[2:], np.zeros((1,) * len(places), np.int64)
    order = range(len(places))
    weights = [math.prod(extents[k + 1 :]) for k in order]
    if call.get("storage_order", 0):
        weights = [math.prod(extents[:k]) for k in order]
    for k in order:
        line = np.arange(places[k]) * how.strides[k] + at[k] * how.dilations[k] - how.before[k]
        total = total + line.reshape([-1 if j == k else 1 for j in order]) * weights[k]
    return call.ref(total[None, None])


def _counts(call: Call, x: Any, how: Slides, places: tuple[int, ...]) -> Any:
    """Return by how many elements the sum of each window is divided."""
    counts = np.ones((1,) * len(places))
    with_padding = call.get("count_include_pad", 0)
    for k, count in enumerate(places):
        first = np.arange(count)[:, None] * how.strides[k] - how.before[k]
        at = first + np.arange(how.window[k]) * how.dilations[k]
        n, before, after = x.shape[2 + k], how.before[k], how.after[k]
        low, high = (-before, n + after) if with_padding else (0, n)
        each = ((at >= low) & (at < high)).sum(1)
        counts = counts * each.reshape([-1 if j == k else 1 for j in range(len(places))])
    return counts[None, None]


@operator("AveragePool")
def average_pool(call: Call, x: Any) -> Any:
    """Return the average of each window, with its padding or without."""
    how, places, beyond = _pooling(call, x)
    with_padding = bool(call.get("count_include_pad", 0))
    if _is_plain(x, how, beyond) and set(how.dilations) == {1}:
        return dnn.average_pool(
            x, how.window, stride=how.strides, padding=how.before, count_padding=with_padding
        )
    wide = x if dtype_of(x) == "float64" else cast(x, "float32")
    total: Any = 0.0
    for _, one in elements(wide, how, places, beyond, 0):
        total = one + total
    counts = _counts(call, x, how, places).astype(dtype_of(wide))
    return like(x, total / call.ref(counts))


@operator("LpPool")
def lp_pool(call: Call, x: Any) -> Any:
    """Return the p-norm of each window."""
    how, places, beyond = _pooling(call, x)
    p = call.get("p", 2)
    total: Any = 0.0
    for _, one in elements(x, how, places, beyond, 0):
        total = abs(one) ** p + total
    return like(x, total ** (1.0 / p))


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(call: Call, x: Any) -> Any:
    """Return the average, the maximum or the p-norm of each channel."""
    axes = tuple(range(2, x.ndim))
    if call.node.op_type == "GlobalAveragePool":
        return x.mean(axis=axes, keepdims=True)
    if call.node.op_type == "GlobalMaxPool":
        return x.max(axis=axes, keepdims=True)
    p = call.get("p", 2)
    return like(x, (abs(x) ** p).sum(axis=axes, keepdims=True) ** (1.0 / p))


@operator("MaxUnpool", host=(2,))
def max_unpool(call: Call, x: Any, places: Any, shape: Any = None) -> Any:
    """Return maxima where they were, and zeros elsewhere."""
    how = slides(call, tuple(call.get("kernel_shape")), x.shape[2:])
    several = zip(x.shape[2:], how.window, how.strides, how.before, how.after, strict=True)
    small = (*x.shape[:2], *[(n - 1) * s + k - b - a for n, k, s, b, a in several])
    wanted = small if shape is None else tuple(int(n) for n in shape)
    made = array.zeros(call.device, (math.prod(small),), dtype_of(x))
    made = combined(made, places.reshape(-1), x.reshape(-1), "max").reshape(small)
    if wanted == small:
        return made
    return array.pad(made, [(0, n - k) for n, k in zip(wanted, small, strict=True)])


@operator("LRN")
def lrn(call: Call, x: Any) -> Any:
    """Return x over a power of the sum of squares of the channels around."""
    size, bias = call.get("size"), call.get("bias", 1.0)
    alpha, beta = call.get("alpha", 0.0001), call.get("beta", 0.75)
    squares = x * x
    before = (size - 1) // 2
    widths = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)]
    padded = array.pad(squares, widths)
    total: Any = 0.0
    for k in range(size):
        total = padded[:, k : k + x.shape[1]] + total
    return like(x, x / (total * (alpha / size) + bias) ** beta)
