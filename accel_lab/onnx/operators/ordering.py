"""Order: the largest elements, where they are, what is there once."""

from typing import Any

import numpy as np

from accel_lab.libraries.array import library as array
from accel_lab.onnx.node import Call, Node
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, cast, dtype_of, is_floating


@operator("ArgMax", "ArgMin")
def arg_extreme(call: Call, x: Any) -> Any:
    """Return where the first, or the last, extreme element is along an axis."""
    at = axis_from_0(call.get("axis", 0), x.ndim)
    find = array.argmax if call.node.op_type == "ArgMax" else array.argmin
    keep = bool(call.get("keepdims", 1))
    if not call.get("select_last_index", 0):
        return find(x, at, keepdims=keep)
    return find(array.flip(x, at), at, keepdims=keep) * -1 + (x.shape[at] - 1)


@operator("TopK", host=(1,), since=10)
def top_k(call: Call, x: Any, count: Any) -> Any:
    """Return the largest or the least elements along an axis, in order, and where they are."""
    at, k = axis_from_0(call.get("axis", -1), x.ndim), int(count.reshape(()))
    if not call.get("largest", 1):
        order = array.argsort(x, at)
    else:
        # Of equal ones the first comes first: the reverse of the order of the reverse.
        order = array.flip(array.argsort(array.flip(x, at), at), at) * -1 + (x.shape[at] - 1)
    whole = (slice(None),) * at
    places = order[(*whole, slice(k))]
    return array.take_along_axis(x, places, axis=at), places


def _along_axis(node: Node) -> str | None:
    return "an axis" if node.get("axis") is not None else None


@operator("Unique", refuses=_along_axis)
def unique(call: Call, x: Any) -> Any:
    """Return each element once, where it is first, which one each is, and how often it is there."""
    wide = cast(x, "float32") if dtype_of(x) == "bfloat16" else x
    made = array.unique(wide, return_index=True, return_inverse=True, return_counts=True)
    values, first, inverse, counts = made
    values, inverse = cast(values, dtype_of(x)), inverse.reshape(-1)
    if call.get("sorted", 1):
        return values, first, inverse, counts
    order = array.argsort(first)
    back = array.argsort(order)
    several = [array.take(one, order, 0) for one in (values, first, counts)]
    return several[0], several[1], array.take(back, inverse, 0), several[2]


@operator("CumSum", "CumProd", host=(1,))
def cumulated(call: Call, x: Any, axis: Any) -> Any:
    """Return sums or products up to each element, with or without it, from either end."""
    at = axis_from_0(int(axis.reshape(())), x.ndim)
    is_sum = call.node.op_type == "CumSum"
    wide = x if not is_floating(x) or dtype_of(x) in ("float32", "float64") else cast(x, "float32")
    line = array.flip(wide, at) if call.get("reverse", 0) else wide
    scan = array.cumsum if is_sum else array.cumprod
    made = scan(line, at, dtype=dtype_of(wide))
    if call.get("exclusive", 0):
        whole = (slice(None),) * at
        shape = (*x.shape[:at], 1, *x.shape[at + 1 :])
        first = array.full(call.device, shape, 0 if is_sum else 1, dtype_of(wide))
        made = array.concatenate([first, made[(*whole, slice(-1))]], at)
    return cast(array.flip(made, at) if call.get("reverse", 0) else made, dtype_of(x))


@operator("NonMaxSuppression", host=(0, 1, 2, 3, 4), anywhere=True)
def non_max_suppression(
    call: Call,
    boxes: Any,
    scores: Any,
    most: Any = None,
    overlap: Any = None,
    least: Any = None,
) -> Any:
    """Return which boxes stay: of those that overlap, the one with the highest score.

    One box is compared after the other: it is done in the notebook, which waits for the boxes.
    """
    count = 0 if most is None else int(most.reshape(()))
    limit = 0.0 if overlap is None else float(overlap.reshape(()))
    chosen = []
    for batch, group in np.ndindex(*scores.shape[:2]):
        corners, score = _corners(call, boxes[batch]), scores[batch, group]
        order = np.argsort(-score, kind="stable")
        if least is not None:
            order = order[score[order] > float(least.reshape(()))]
        kept: list[int] = []
        for at in order:
            if len(kept) >= count:
                break
            if all(_overlap(corners[at], corners[one]) <= limit for one in kept):
                kept.append(int(at))
        chosen += [(batch, group, at) for at in kept]
    return np.asarray(chosen, np.int64).reshape(-1, 3)


def _corners(call: Call, boxes: Any) -> Any:
    """Return boxes as their lower and upper corners."""
    if call.get("center_point_box", 0):
        centre, half = boxes[:, [1, 0]], boxes[:, [3, 2]] / 2
        return np.concatenate([centre - half, centre + half], 1)
    one, other = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(one, other), np.maximum(one, other)], 1)


def _overlap(one: Any, other: Any) -> float:
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    inside = float(np.prod(np.maximum(sides, 0)))
    areas = float(np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]))
    return inside / (areas - inside) if inside else 0.0
