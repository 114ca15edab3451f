"""Convolutions as products of matrices: each window becomes a column (im2col)."""

import math
from collections.abc import Iterator
from typing import Any

from accel_lab.libraries.dnn.windows import Windows

COLUMN_BYTES = 32 << 20
"""How much memory the columns of some images may take at once."""


def forward(xp: Any, x: Any, w: Any, slides: Windows, groups: int) -> Any:
    """Return the sums; channels are behind the first axis of all arrays."""
    places = slides.places(x.shape[2:])
    y = xp.empty((x.shape[0], groups, w.shape[0] // groups, math.prod(places)), x.dtype)
    filters = w.reshape(groups, w.shape[0] // groups, -1)
    for some in _chunks(x, filters.shape[2], places, groups):
        y[some] = xp.matmul(filters, _columns(xp, x[some], slides, places, groups))
    return y.reshape(x.shape[0], w.shape[0], *places)


def data_gradient(xp: Any, dy: Any, w: Any, extents: Any, slides: Windows, groups: int) -> Any:
    """Return the gradient by what was convolved: each column is added to where it came from."""
    batch, places, channels = dy.shape[0], dy.shape[2:], w.shape[1]
    shape = (batch, groups, channels, *extents)
    padded = xp.zeros(slides.padded_shape(shape), dy.dtype)
    filters = w.reshape(groups, w.shape[0] // groups, -1).transpose(0, 2, 1)
    rows = dy.reshape(batch, groups, dy.shape[1] // groups, math.prod(places))
    for some in _chunks(dy, filters.shape[1], places, groups):
        made = xp.matmul(filters, rows[some])
        columns = made.reshape(made.shape[0], groups, channels, *slides.window, *places)
        part = padded[some]
        for at, lies in slides.slices(places):
            part[lies] += columns[(slice(None), slice(None), slice(None), *at)]
    return slides.inside(padded).reshape(batch, groups * channels, *extents)


def filter_gradient(xp: Any, x: Any, dy: Any, slides: Windows, groups: int) -> Any:
    """Return the gradient by the filters."""
    places = dy.shape[2:]
    filters, channels = dy.shape[1], x.shape[1] // groups
    dw = xp.zeros((groups, filters // groups, channels * math.prod(slides.window)), x.dtype)
    rows = dy.reshape(dy.shape[0], groups, filters // groups, math.prod(places))
    for some in _chunks(x, dw.shape[2], places, groups):
        columns = _columns(xp, x[some], slides, places, groups)
        dw += xp.matmul(rows[some], columns.transpose(0, 1, 3, 2)).sum(axis=0)
    return dw.reshape(filters, channels, *slides.window)


def _columns(xp: Any, x: Any, slides: Windows, places: tuple[int, ...], groups: int) -> Any:
    """Return each window as a column: (batch, groups, channels and window, places)."""
    shape = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    padded = slides.padded(xp, x.reshape(shape))
    made = xp.empty((*shape[:3], *slides.window, *places), x.dtype)
    for at, lies in slides.slices(places):
        made[(slice(None), slice(None), slice(None), *at)] = padded[lies]
    return made.reshape(shape[0], groups, -1, math.prod(places))


def _chunks(x: Any, rows: int, places: tuple[int, ...], groups: int) -> Iterator[slice]:
    """Return as many images at a time as have columns, of so many rows, that fit."""
    of_one = math.prod(places) * groups * rows * x.itemsize
    step = max(1, COLUMN_BYTES // max(1, of_one))
    for first in range(0, x.shape[0], step):
        yield slice(first, first + step)
