"""Arrays of arrays: joined, split, padded, turned and repeated, as NumPy does it.

All but `concatenate` is made of other messages: `split` and `flip` of views, the rest of copies.
"""

import operator
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import Operand, device_among
from accel_lab.libraries.array.indexing import take
from accel_lab.libraries.array.message import ArrayMessage, axis_of
from accel_lab.libraries.array.shaping import Broadcast, axes_of, broadcast_to, expand_dims
from accel_lab.libraries.authoring.operand import describe, plain, result
from accel_lab.libraries.authoring.options import DType, Options
from accel_lab.libraries.authoring.shape import Integers, ints

__all__ = [
    "Concatenate",
    "array_split",
    "concatenate",
    "flip",
    "pad",
    "repeat",
    "roll",
    "split",
    "stack",
    "tile",
]

PadMode: TypeAlias = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
_MODES = frozenset({"constant", "edge", "reflect", "symmetric", "wrap"})


class Concatenate(ArrayMessage, frozen=True, tag=113):
    """Join buffers along an axis, or all their elements in C order if it is None.

    Their dtypes promote as NumPy's do. `dtype` asks for another, which takes what is of its kind.
    """

    xs: tuple[AccelRef, ...]
    axis: int | None = 0
    _: Options
    dtype: DType | None = None

    def infer(self) -> Spec:
        """Return the shape of all together, and their common dtype."""
        xs = self.xs
        if not xs:
            raise InvalidArgument("Concatenate: there is nothing to join")
        dtype = self._made_dtype()
        if self.axis is None:
            return result(self, (sum(x.size for x in xs),), dtype)
        first, at = xs[0], axis_of("Concatenate", xs[0], self.axis)
        shape = list(first.shape)
        for x in xs[1:]:
            other = list(x.shape)
            if len(other) != len(shape) or any(
                n != k for axis, (n, k) in enumerate(zip(other, shape, strict=True)) if axis != at
            ):
                raise InvalidArgument(
                    f"Concatenate: {describe(first)} and {describe(x)} differ elsewhere than along "
                    f"axis {at}"
                )
        shape[at] = sum(x.shape[at] for x in xs)
        return result(self, tuple(shape), dtype)

    def _made_dtype(self) -> str:
        dtypes = tuple([str(x.dtype) for x in self.xs])
        if self.dtype is None:
            try:
                return _together(dtypes)
            except TypeError:
                texts = " and ".join(sorted(set(dtypes)))
                text = f"Concatenate: {texts} have no dtype in common; convert with array.cast"
                raise InvalidArgument(text) from None
        target = numpy_dtype(self.dtype)
        for dtype in dtypes:
            if not np.can_cast(numpy_dtype(dtype), target, "same_kind"):
                raise InvalidArgument(
                    f"Concatenate: {dtype} is not of the same kind as {self.dtype}; convert with "
                    "array.cast"
                )
        return str(self.dtype)

    def places(self, arrays: Sequence[Any]) -> list[tuple[Any, tuple[slice, ...]]]:
        """Return the array of each operand with where it goes in the result."""
        if self.axis is None:
            arrays, axis = [x.reshape(-1) for x in arrays], 0
        else:
            axis = axis_of("Concatenate", self.xs[0], self.axis)
        ends = pairwise(accumulate((x.shape[axis] for x in arrays), initial=0))
        whole = (slice(None),) * axis
        return [(x, (*whole, slice(*end))) for x, end in zip(arrays, ends, strict=True)]


@lru_cache(maxsize=256)
def _together(dtypes: tuple[str, ...]) -> str:
    """Return the dtype of NumPy's `concatenate`.

    Raises:
        TypeError: there is none that a buffer can have.
    """
    try:
        return canonical(np.concatenate([np.ones(1, numpy_dtype(d)) for d in dtypes]).dtype)
    except InvalidArgument as error:
        raise TypeError from error


def concatenate(
    arrays: Sequence[Operand], axis: int | None = 0, *, dtype: object = None
) -> AccelRef:
    """Return buffers joined along an axis, as `Concatenate` says; does not block.

    NumPy arrays among them are uploaded; one at least must be a buffer.

    Raises:
        InvalidArgument: the shapes do not fit, or the dtypes have none in common.
    """
    xs = _refs(arrays)
    asked = None if dtype is None else canonical(dtype)
    return xs[0].device.ask(Concatenate(xs, plain(axis), dtype=asked))


def stack(arrays: Sequence[Operand], axis: int = 0, *, dtype: object = None) -> AccelRef:
    """Return buffers of one shape joined along a new axis; does not block.

    Raises:
        InvalidArgument: the shapes differ, or the dtypes have none in common.
    """
    xs = _refs(arrays)
    if any(x.shape != xs[0].shape for x in xs):
        texts = " and ".join(map(describe, xs))
        raise InvalidArgument(f"stack: {texts} are not of one shape")
    return concatenate([expand_dims(x, axis) for x in xs], axis, dtype=dtype)


def split(x: AccelRef, indices_or_sections: Integers, axis: int = 0) -> list[AccelRef]:
    """Return views of parts of equal length, or of those that end at indices; does not block.

    Raises:
        InvalidArgument: there is no such axis, or its length is no multiple of the sections.
    """
    at, sections = axis_of("split", device_checked(x), plain(axis)), indices_or_sections
    if not _is_several(sections):
        (count,) = ints("split: sections", sections)
        if count < 1 or x.shape[at] % count:
            text = f"split: axis {at} of x {describe(x)} is not {count} parts of equal length"
            raise InvalidArgument(text)
    return array_split(x, sections, at)


def array_split(x: AccelRef, indices_or_sections: Integers, axis: int = 0) -> list[AccelRef]:
    """Return views of parts as `split` does, the first ones longer by one where it is not even.

    Raises:
        InvalidArgument: there is no such axis, or no section.
    """
    at = axis_of("array_split", device_checked(x), plain(axis))
    given, extent = ints("array_split: sections", indices_or_sections), x.shape[at]
    if _is_several(indices_or_sections):
        ends = (0, *given, extent)
    else:
        (count,) = given
        if count < 1:
            raise InvalidArgument(f"array_split: {count} sections are less than 1")
        each, longer = divmod(extent, count)
        ends = (*accumulate([each + 1] * longer + [each] * (count - longer), initial=0),)
    whole = (slice(None),) * at
    return [x[(*whole, slice(begin, end))] for begin, end in pairwise(ends)]


def flip(x: AccelRef, axis: Integers | None = None) -> AccelRef:
    """Return a view with the elements along axes, or all of them, in reverse; does not block.

    Raises:
        InvalidArgument: there is no such axis.
    """
    axes = axes_of("flip", device_checked(x), axis)
    return x[tuple(slice(None, None, -1 if at in axes else None) for at in range(x.ndim))]


def roll(x: AccelRef, shift: Integers, axis: Integers | None = None) -> AccelRef:
    """Return the elements shifted along axes, those beyond the end first; does not block.

    Without an axis they are shifted in C order.

    Raises:
        InvalidArgument: there is no such axis, or not as many shifts as axes.
    """
    by_each = ints("roll: shift", shift)
    if axis is None:
        return roll(device_checked(x).reshape(-1), sum(by_each), 0).reshape(x.shape)
    try:
        pairs = np.broadcast(by_each, ints("roll: axis", axis))
    except ValueError:
        raise InvalidArgument(f"roll: {shift} and {axis} are not equally many") from None
    moved = [(int(by), axis_of("roll", device_checked(x), int(at))) for by, at in pairs]
    rolled = x
    for by, at in moved:
        extent, whole = x.shape[at], (slice(None),) * at
        if extent and (cut := -by % extent):
            parts = [rolled[(*whole, slice(cut, None))], rolled[(*whole, slice(cut))]]
            rolled = concatenate(parts, at)
    return x.copy() if rolled is x else rolled


def tile(x: AccelRef, reps: Integers) -> AccelRef:
    """Return `x` repeated as a whole, `reps` times along each axis; does not block.

    Raises:
        InvalidArgument: a number is less than 0.
    """
    times = ints("tile: reps", reps)
    if any(n < 0 for n in times):
        raise InvalidArgument(f"tile: {times} has a number less than 0")
    ndim = max(device_checked(x).ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    # Each axis that is repeated is one for the copies and one for what is copied.
    narrow = [n for k, n in zip(times, shape, strict=True) for n in ((1, n) if k != 1 else (n,))]
    wide = [n for k, n in zip(times, shape, strict=True) for n in ((k, n) if k != 1 else (n,))]
    spread = x.device.ask(Broadcast(x.reshape(tuple(narrow)), tuple(wide)))
    return spread.reshape(tuple(k * n for k, n in zip(times, shape, strict=True)))


def repeat(x: AccelRef, repeats: Integers, axis: int | None = None) -> AccelRef:
    """Return each element `repeats` times, one after the other, along an axis; does not block.

    Without an axis that is of all elements in C order. `repeats` may have a number for each.

    Raises:
        InvalidArgument: there is no such axis, a number is less than 0, or there are not as many
            as elements.
    """
    times = ints("repeat: repeats", repeats)
    if any(n < 0 for n in times):
        raise InvalidArgument(f"repeat: {times} has a number less than 0")
    at = None if axis is None else axis_of("repeat", device_checked(x), plain(axis))
    extent = device_checked(x).size if at is None else x.shape[at]
    if len(times) not in (1, extent):
        text = f"repeat: {len(times)} numbers for the {extent} elements of axis {at}"
        raise InvalidArgument(f"{text} of x {describe(x)}")
    if at is None:
        return repeat(x.reshape(-1), times, 0)
    if len(times) == 1:
        shape = (*x.shape[: at + 1], times[0], *x.shape[at + 1 :])
        spread = x.device.ask(Broadcast(expand_dims(x, at + 1), shape))
        return spread.reshape((*x.shape[:at], extent * times[0], *x.shape[at + 1 :]))
    return take(x, np.repeat(np.arange(extent), times), at)


def pad(
    x: AccelRef, pad_width: Any, mode: PadMode = "constant", *, constant_values: Any = 0
) -> AccelRef:
    """Return `x` with elements added before and after it along each axis; does not block.

    `pad_width` is (before, after) for each axis, one such pair for all, or one number. What is
    added is a constant, or, by `mode`, made of what is there: "edge", "reflect", "symmetric",
    "wrap". `constant_values` is as `pad_width`.

    Raises:
        InvalidArgument: the widths are not as many as axes, or less than 0, there is no such mode,
            or nothing to make the elements of.
    """
    device, widths = device_of(x), _pairs("pad_width", pad_width, x.ndim)
    if widths.dtype.kind not in "iu" or (widths < 0).any():
        raise InvalidArgument(f"pad: pad_width must be integers from 0, not {pad_width!r}")
    if mode not in _MODES:
        raise InvalidArgument(f"pad: there is no mode {mode!r}, but {', '.join(sorted(_MODES))}")
    numbers = _pairs("constant_values", constant_values, x.ndim)
    added = [at for at in range(x.ndim) if widths[at].any()]
    if mode != "constant" and any(x.shape[at] == 0 for at in added):
        raise InvalidArgument(f"pad: x {describe(x)} has nothing to make of by mode {mode!r}")
    padded = x
    for at in added:
        if mode != "constant":
            places: Any = np.pad(np.arange(x.shape[at]), widths[at], mode)
            padded = take(padded, places, at)
            continue
        parts = [padded]
        for side, first in ((0, True), (1, False)):
            if not (count := int(widths[at, side])):
                continue
            with np.errstate(all="ignore"):
                one = device.put(np.asarray(numbers[at, side]).astype(numpy_dtype(x.dtype)))
            shape = (*padded.shape[:at], count, *padded.shape[at + 1 :])
            constant = broadcast_to(one, shape)
            parts = [constant, *parts] if first else [*parts, constant]
        padded = concatenate(parts, at)
    return x.copy() if padded is x else padded


def device_checked(x: AccelRef) -> AccelRef:
    """Return what is a buffer.

    Raises:
        InvalidArgument: it is none.
    """
    device_of(x)
    return x


def _refs(arrays: Sequence[Operand]) -> tuple[AccelRef, ...]:
    several = (*arrays,)
    device = device_among(*several)
    return tuple([x if isinstance(x, AccelRef) else device.put(np.asarray(x)) for x in several])


def _is_several(value: Integers) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return True
    return False


def _pairs(name: str, value: Any, ndim: int) -> Any:
    """Return numbers as (before, after) for each axis.

    Raises:
        InvalidArgument: they are not that.
    """
    try:
        return np.broadcast_to(np.asarray(value), (ndim, 2))
    except ValueError:
        text = f"pad: {name} is to be a number, a pair, or a pair for each of {ndim} axes"
        raise InvalidArgument(f"{text}, not {value!r}") from None
