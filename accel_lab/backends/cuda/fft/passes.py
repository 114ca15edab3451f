"""How cuFFT addresses arrays of any strides: pure arithmetic on shapes and strides, without CUDA.

cuFFT transforms up to three axes at once, of a batch with one distance. With s the elements from
one to the next, element (i, j, k) of an array lies at ((i * embed[1] + j) * embed[2] + k) * s, so
that each stride must be a multiple of the next one. What has more axes takes several passes, and
a batch that has no single distance several calls.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from accel_lab.libraries.fft.transform import Kind

Axes = tuple[int, ...]
"""A shape, or strides."""

MOST_AXES = 3
FEW_CALLS = 16
"""How many calls are cheaper than a copy of the array."""
MANY_POINTS = 2**31
"""From here on cuFFT counts in 64 bits, and does not take every size."""


class Layout(NamedTuple):
    """A shape, and the elements from one to the next along each axis."""

    shape: Axes
    strides: Axes


class Side(NamedTuple):
    """The operand or the result of a plan, in cuFFT's words."""

    embed: Axes
    stride: int
    distance: int


class Plan(NamedTuple):
    """All that a plan of cuFFT depends on, but for the precision."""

    kind: Kind
    n: Axes
    source: Side
    target: Side
    batch: int


class Pass(NamedTuple):
    """One transform of some axes of a whole array.

    Attributes:
        offsets: where in the operand and in the result each call begins, in elements.
        in_place: whether it works within the operand (-1), from there to the result (0), or
            within the result (1).
    """

    plan: Plan
    offsets: tuple[tuple[int, int], ...]
    in_place: int


class Work(NamedTuple):
    """What is to be transformed.

    Attributes:
        kind: whether it begins or ends with real numbers.
        lengths: the points along each axis of the array, 1 where nothing is transformed.
        half: the axis of which the complex side has only half, None if there is none.
    """

    kind: Kind
    lengths: Axes
    half: int | None


def dense(shape: Axes, order: Sequence[int]) -> Layout:
    """Return the layout without gaps whose axes come in this order, the innermost last."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return Layout(shape, tuple(strides))


def order_of(strides: Axes) -> list[int]:
    """Return the axes as they lie in memory, the innermost last."""
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


def packed(kind: Kind, n: Axes, elements: int) -> Plan:
    """Return the plan of dense arrays: the operand has so many real numbers, two in a complex one.

    cuFFT takes no others in half precision.
    """
    half = (*n[:-1], n[-1] // 2 + 1)
    read, written = (half if kind == one else n for one in ("C2R", "R2C"))
    source, target = (Side(embed, 1, math.prod(embed)) for embed in (read, written))
    held = elements if kind == "R2C" else elements // 2
    return Plan(kind, n, source, target, held // source.distance)


def passes(
    work: Work, source: Layout, target: Layout, *, most_calls: int | None = FEW_CALLS
) -> list[Pass] | None:
    """Return the passes from one array to the other, or None when cuFFT cannot address them.

    All but one work in place, within the complex array. A pass makes at most `most_calls`.
    """
    rest = [axis for axis in order_of(target.strides) if work.lengths[axis] > 1]
    if work.half is not None:
        rest.remove(work.half)
    within = source if work.kind == "C2R" else target
    crossing = _group(work, rest, source, target, most_calls, crosses=True)
    if crossing is None:
        return None
    found = [Pass(plan, offsets, 0) for plan, offsets in crossing]
    inner = Work("C2C", work.lengths, None)
    while rest:
        group = _group(inner, rest, within, within, most_calls, crosses=False)
        if group is None:
            return None
        added = [Pass(plan, offsets, -1 if within is source else 1) for plan, offsets in group]
        found = added + found if work.kind == "C2R" else found + added
    return found


Calls = list[tuple[Plan, tuple[tuple[int, int], ...]]]


def _group(
    work: Work,
    rest: list[int],
    source: Layout,
    target: Layout,
    most_calls: int | None,
    *,
    crosses: bool,
) -> Calls | None:
    """Take from `rest` as many of the innermost axes as one plan can transform."""
    half = [work.half] if crosses and work.half is not None else []
    least = 0 if half else 1
    for count in range(min(MOST_AXES - len(half), len(rest)), least - 1, -1):
        chosen = rest[len(rest) - count :]
        calls = _calls(work, [*chosen, *half], source, target, most_calls)
        if calls is not None:
            del rest[len(rest) - count :]
            return calls
    return None


def _calls(
    work: Work, axes: list[int], source: Layout, target: Layout, most_calls: int | None
) -> Calls | None:
    """Return the calls that transform these axes, the halved one last."""
    of_source, of_target = _embedded(axes, source), _embedded(axes, target)
    if of_source is None or of_target is None:
        return None
    n = tuple(work.lengths[axis] for axis in axes)
    others = [
        (extent, source.strides[axis], target.strides[axis])
        for axis, extent in enumerate(target.shape)
        if axis not in axes and extent > 1
    ]
    batch, outer = _batch(others)
    if most_calls is not None and math.prod(extent for extent, *_ in outer) > most_calls:
        return None
    starts = [
        (sum(i * s for i, (_, s, _) in at), sum(i * t for i, (_, _, t) in at))
        for index in product(*(range(extent) for extent, *_ in outer))
        for at in [list(zip(index, outer, strict=True))]
    ]
    # Both sides of a call must be aligned as complex numbers are.
    real = {"C2C": None, "R2C": 0, "C2R": 1}[work.kind]
    if real is not None and any(start[real] % 2 for start in starts):
        return None
    count, from_one, to_one = batch
    calls: Calls = []
    for first, length in _portions(count, math.prod(n)):
        plan = Plan(
            work.kind,
            n,
            Side(*of_source, from_one),
            Side(*of_target, to_one),
            length,
        )
        shifted = tuple((s + first * from_one, t + first * to_one) for s, t in starts)
        calls.append((plan, shifted))
    return _joined(calls)


def _embedded(axes: list[int], layout: Layout) -> tuple[Axes, int] | None:
    """Return cuFFT's (embed, stride) of these axes, or None when it has none."""
    strides = [layout.strides[axis] for axis in axes]
    embed = [layout.shape[axes[0]]]
    for outer, inner, axis in zip(strides, strides[1:], axes[1:], strict=False):
        if inner <= 0 or outer % inner or outer // inner < layout.shape[axis]:
            return None
        embed.append(outer // inner)
    return (tuple(embed), strides[-1]) if strides[-1] > 0 else None


Batch = tuple[int, int, int]
"""An extent, and the elements from one to the next in the operand and in the result."""


def _batch(others: list[Batch]) -> tuple[Batch, list[Batch]]:
    """Return the largest batch that one call can take, and what is left for several calls."""
    merged: list[Batch] = []
    for extent, s, t in sorted(others, key=lambda other: -abs(other[2])):
        if merged and merged[-1][1:] == (s * extent, t * extent):
            merged[-1] = (merged[-1][0] * extent, s, t)
        else:
            merged.append((extent, s, t))
    able = [batch for batch in merged if batch[1] > 0 and batch[2] > 0]
    if not able:
        return (1, 1, 1), merged
    largest = max(able)
    merged.remove(largest)
    return largest, merged


def _portions(count: int, points: int) -> list[tuple[int, int]]:
    """Return (first, length) of the parts of a batch, none of too many points together."""
    most = max(2, MANY_POINTS // points // 2 * 2)  # an even number keeps real arrays aligned
    return [(first, min(most, count - first)) for first in range(0, count, most)]


def _joined(calls: Calls) -> Calls:
    """Let portions of one size share their plan."""
    joined: dict[Plan, tuple[tuple[int, int], ...]] = {}
    for plan, offsets in calls:
        joined[plan] = joined.get(plan, ()) + offsets
    return list(joined.items())
