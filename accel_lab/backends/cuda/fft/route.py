"""The way from an operand to its transform: passes of cuFFT, with as few copies as possible.

Pure arithmetic on shapes and strides, without CUDA; the same test plays every route in NumPy.
"""

import math
from typing import NamedTuple, TypeAlias

from accel_lab.backends.cuda.fft.copies import Element, Halved, Move, move
from accel_lab.backends.cuda.fft.passes import Axes, Layout, Pass, Work, dense, order_of, passes
from accel_lab.libraries.fft.transform import Frame, Kind

X, OUT, FIRST, SECOND = range(4)
"""The operand, the result, and two arrays in between."""


class Array(NamedTuple):
    """Where an operand or result lies: strides in bytes, and whether complex ones fit there."""

    shape: Axes
    strides: Axes
    itemsize: int
    element: Element
    aligned: bool = True

    def layout(self, shape: Axes) -> Layout | None:
        """Return the part of this shape as cuFFT counts, or None when it cannot address it."""
        if not self.aligned or any(stride % self.itemsize for stride in self.strides):
            return None
        return Layout(shape, tuple(stride // self.itemsize for stride in self.strides))


class Run(NamedTuple):
    """A pass of cuFFT from one array to another, or within one."""

    work: Pass
    source: int
    target: int


class Copy(NamedTuple):
    """A copy from one array to another, or within one."""

    move: Move
    source: int
    target: int
    read: Element
    written: Element


Step: TypeAlias = Run | Copy


class Route(NamedTuple):
    """The steps of one transform, and the bytes of the two arrays in between."""

    steps: tuple[Step, ...]
    first_bytes: int = 0
    second_bytes: int = 0


class Task(NamedTuple):
    """One transform: what the message says, and where its arrays lie."""

    kind: Kind
    frame: Frame
    factor: float
    x: Array
    out: Array

    @property
    def half(self) -> int | None:
        """The axis of which the complex side has half, unless it is a single point."""
        if self.kind == "C2C" or self.frame.lengths[-1] == 1:
            return None
        return self.frame.axes[-1]

    @property
    def work(self) -> Work:
        """What cuFFT has to do."""
        lengths = [1] * len(self.frame.shape)
        for axis, n in zip(self.frame.axes, self.frame.lengths, strict=True):
            lengths[axis] = n
        return Work("C2C" if self.half is None else self.kind, tuple(lengths), self.half)

    @property
    def operand(self) -> Layout | None:
        """The operand as cuFFT can read it at once, None when it has to be copied first."""
        source = self.frame.source
        padded = any(n > held for n, held in zip(source, self.x.shape, strict=True))
        wanted = "real" if self.work.kind == "R2C" else "complex"
        if padded or self.kind == "C2R" or self.x.element != wanted:
            return None  # cuFFT overwrites what it transforms to real numbers
        return self.x.layout(source)

    @property
    def order(self) -> list[int]:
        """The axes with the batch first, which cuFFT can always address."""
        lengths = self.work.lengths
        return sorted(range(len(lengths)), key=lambda axis: (lengths[axis] > 1, axis == self.half))


def route(task: Task) -> Route:
    """Return the cheapest way that there is: a copy costs more than a few calls."""
    if all(n == 1 for n in task.work.lengths):
        return Route((_scaled(task, X, task.x.element, task.x.strides, task.frame.source),))
    if task.kind == "C2R" and task.half is None:
        return _to_real_parts(task)
    return _without_copy(task) or _copied_before(task) or _copied_after(task) or _copied_twice(task)


def _without_copy(task: Task) -> Route | None:
    source, target = task.operand, task.out.layout(task.frame.shape)
    if source is None or target is None:
        return None
    found = passes(task.work, source, target)
    if found is None:
        return None
    steps: list[Step] = _runs(found, X, OUT)
    if task.factor != 1:
        steps.append(_scaled(task, OUT, task.out.element, task.out.strides, task.frame.shape))
    return Route(tuple(steps))


def _copied_before(task: Task) -> Route | None:
    """Copy into an array that lies as the result does, or into the result itself."""
    target = task.out.layout(task.frame.shape)
    if target is None:
        return None
    if task.work.kind == "C2C":
        found = passes(task.work, target, target)
        if found is None:
            return None
        return Route((_gathered(task, OUT, task.out.strides), *_runs(found, OUT, OUT)))
    source = dense(task.frame.source, order_of(target.strides))
    found = passes(task.work, source, target)
    if found is None:
        return None
    size, strides = _memory(task, source, real=task.kind == "R2C")
    return Route((_gathered(task, FIRST, strides), *_runs(found, FIRST, OUT)), size)


def _copied_after(task: Task) -> Route | None:
    """Transform into an array that lies as the operand does."""
    source = task.operand
    if source is None:
        return None
    target = dense(task.frame.shape, order_of(source.strides))
    found = passes(task.work, source, target)
    if found is None:
        return None
    size, strides = _memory(task, target, real=False)
    last = _scaled(task, SECOND, "complex", strides, task.frame.shape)
    return Route((*_runs(found, X, SECOND), last), 0, size)


def _copied_twice(task: Task) -> Route:
    """Put the batch first; this can be done whatever the layouts are."""
    real = task.kind if task.half is not None else None
    source, target = dense(task.frame.source, task.order), dense(task.frame.shape, task.order)
    first, between = _memory(task, source, real=real == "R2C")
    second, after = _memory(task, target, real=real == "C2R")
    one = SECOND
    if real is None:
        one, second = FIRST, 0
    found = passes(task.work, source, target, most_calls=None)
    assert found is not None
    read: Element = "real" if real == "C2R" else "complex"
    last = _scaled(task._replace(factor=1.0), one, read, after, task.frame.shape)
    steps = (_gathered(task, FIRST, between), *_runs(found, FIRST, one), last)
    return Route(steps, first, second)


def _to_real_parts(task: Task) -> Route:
    """Transform to real numbers where the halved axis is a single point: take the real parts."""
    within = dense(task.frame.source, task.order)
    size, strides = _memory(task, within, real=False)
    found = passes(task.work, within, within, most_calls=None)
    assert found is not None
    last = _scaled(task._replace(factor=1.0), FIRST, "complex", strides, task.frame.shape)
    return Route((_gathered(task, FIRST, strides), *_runs(found, FIRST, FIRST), last), size)


def _runs(found: list[Pass], source: int, target: int) -> list[Step]:
    ends = {-1: (source, source), 0: (source, target), 1: (target, target)}
    return [Run(one, *ends[one.in_place]) for one in found]


def _gathered(task: Task, target: int, strides: Axes) -> Copy:
    """Copy the operand, cropped or padded, and scale it on the way."""
    halved = None
    if task.kind == "C2R":
        *others, axis = task.frame.axes
        halved = Halved(axis, task.frame.lengths[-1], tuple(others))
    made = move(
        task.frame.source,
        task.x.shape,
        task.x.strides,
        strides,
        factor=task.factor,
        halved=halved,
    )
    written: Element = "real" if task.work.kind == "R2C" else "complex"
    return Copy(made, X, target, task.x.element, written)


def _scaled(task: Task, source: int, read: Element, strides: Axes, shape: Axes) -> Copy:
    """Copy into the result, and scale it on the way."""
    held = task.x.shape if source == X else shape
    made = move(shape, held, strides, task.out.strides, factor=task.factor)
    return Copy(made, source, OUT, read, task.out.element)


def _memory(task: Task, layout: Layout, *, real: bool) -> tuple[int, Axes]:
    """Return the bytes and strides of an array in between."""
    single = task.x.itemsize if task.x.element == "real" else task.x.itemsize // 2
    itemsize = single if real else 2 * single
    return math.prod(layout.shape) * itemsize, tuple(itemsize * step for step in layout.strides)
