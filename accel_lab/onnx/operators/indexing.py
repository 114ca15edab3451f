"""Elements taken from places, and written to places."""

import math
from typing import Any

import numpy as np

from accel_lab.libraries.array import library as array
from accel_lab.onnx.node import Call
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, cast


@operator("Gather", anywhere=True)
def gather(call: Call, x: Any, indices: Any) -> Any:
    """Return the parts of a tensor at indices along an axis."""
    return call.xp.take(x, indices, axis=call.get("axis", 0))


@operator("GatherElements")
def gather_elements(call: Call, x: Any, indices: Any) -> Any:
    """Return an element for each index along an axis."""
    at = axis_from_0(call.get("axis", 0), x.ndim)
    return array.take_along_axis(_beside(x, indices, at), indices, axis=at)


def _beside(x: Any, indices: Any, axis: int) -> Any:
    """Return a view of what lies beside indices: of other axes they may have less."""
    index = [slice(n) for n in indices.shape]
    index[axis] = slice(None)
    return x[tuple(index)]


@operator("GatherND")
def gather_nd(call: Call, x: Any, indices: Any) -> Any:
    """Return the parts of a tensor at tuples of indices."""
    batch = call.get("batch_dims", 0)
    depth, lead = indices.shape[-1], x.shape[:batch]
    extents, rest = x.shape[batch : batch + depth], x.shape[batch + depth :]
    rows = math.prod(lead)
    place = flat_places(indices.reshape((rows, -1, depth)), extents)
    each = math.prod(extents)
    whole = place + call.ref(np.arange(rows).reshape(-1, 1) * each)
    parts = array.take(x.reshape((rows * each, *rest)), whole.reshape(-1), 0)
    return parts.reshape((*indices.shape[:-1], *rest))


def flat_places(indices: Any, extents: tuple[int, ...]) -> Any:
    """Return where tuples of indices point to in C order; those below 0 count from the end."""
    place: Any = None
    for k, extent in enumerate(extents):
        one = cast(indices[..., k], "int64")
        one = array.where(one < 0, one + extent, one)
        place = one if place is None else place * extent + one
    return place


@operator("ScatterElements", "Scatter")
def scatter_elements(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    """Return a copy with elements written at indices along an axis, or combined with what is."""
    at, how = axis_from_0(call.get("axis", 0), x.ndim), call.get("reduction", "none")
    if not indices.size:
        return x
    if how == "none":
        made = array.copy(x)
        array.put_along_axis(_beside(made, indices, at), indices, updates, axis=at)
        return made
    wide = cast(indices, "int64")
    place: Any = 0
    for axis, extent in enumerate(x.shape):
        if axis == at:
            one = array.where(wide < 0, wide + extent, wide)
        else:
            shape = [1] * x.ndim
            shape[axis] = indices.shape[axis]
            one = call.ref(np.arange(indices.shape[axis]).reshape(shape))
        place = one if axis == 0 else place * extent + one
    place = array.broadcast_to(place, indices.shape)
    return combined(x.reshape(-1), place.reshape(-1), updates.reshape(-1), how).reshape(x.shape)


@operator("ScatterND")
def scatter_nd(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    """Return a copy with parts written at tuples of indices, or combined with what is there."""
    depth, how = indices.shape[-1], call.get("reduction", "none")
    if not indices.size:
        return x
    extents, rest = x.shape[:depth], x.shape[depth:]
    rows, width = math.prod(extents), math.prod(rest)
    place = flat_places(indices, extents).reshape(-1)
    table, news = x.reshape((rows, width)), updates.reshape((-1, width))
    if how == "none":
        made = array.copy(table)
        array.assign(made, place, news)
        return made.reshape(x.shape)
    columns = call.ref(np.arange(width).reshape(1, -1))
    whole = place.reshape((-1, 1)) * width + columns
    made = combined(table.reshape(-1), whole.reshape(-1), news.reshape(-1), how)
    return made.reshape(x.shape)


_PAIRS = {
    "add": array.add,
    "mul": array.multiply,
    "max": array.maximum,
    "min": array.minimum,
}


def combined(x: Any, place: Any, news: Any, how: str) -> Any:
    """Return a vector with new elements combined with what is at their places.

    Several may have one place. In rounds the k-th of each place is written: as many rounds as the
    most that share one, which is waited for.
    """
    combine = _PAIRS[how]
    order = array.argsort(place)
    place, news = array.take(place, order, 0), array.take(news, order, 0)
    first = array.searchsorted(place, place)
    turn = array.arange(x.device, place.size) - first
    made = array.copy(x)
    for k in range(int(turn.max()) + 1):
        chosen = array.mask(array.arange(x.device, place.size), array.equal(turn, k))
        here = array.take(place, chosen, 0)
        array.assign(made, here, combine(array.take(made, here, 0), array.take(news, chosen, 0)))
    return made


@operator("TensorScatter", host=(2,))
def tensor_scatter(call: Call, x: Any, update: Any, starts: Any = None) -> Any:
    """Return a copy with an update written from a place on, for each of a batch."""
    at = axis_from_0(call.get("axis", -2), x.ndim)
    made, length, extent = array.copy(x), update.shape[at], x.shape[at]
    first = np.zeros(x.shape[0], int) if starts is None else starts
    is_circular = call.get("mode", "linear") == "circular"
    for row, start in enumerate(first):
        steps = np.arange(length) + int(start)
        places = steps % extent if is_circular else slice(int(start), int(start) + length)
        whole = (slice(None),) * (at - 1)
        array.assign(made[row], (*whole, places), update[row])
    return made
