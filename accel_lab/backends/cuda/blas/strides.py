"""How BLAS walks the elements of vectors, and of larger arrays that lie densely in memory."""

from typing import Any, NamedTuple

from accel_lab.backends.cuda.blas.layout import NARROW_LIMIT, increment


class Walk(NamedTuple):
    """The way through one or more arrays of one shape.

    Attributes:
        steps: elements from one to the next, for each array.
        wide: whether a number does not fit 32 bits.
    """

    steps: tuple[int, ...]
    wide: bool


def common_walk(*arrays: Any, itemsize: int) -> Walk | None:
    """Return how to walk CuPy arrays side by side, or None when one would have to be copied."""
    # `_c_contiguous` is ten times cheaper than `flags`.
    if all([x._c_contiguous for x in arrays]) or all([x._f_contiguous for x in arrays]):  # noqa: SLF001, C419 - a list is faster
        return dense_walk(*arrays)
    if arrays[0].ndim != 1:
        return None
    steps = tuple(increment(x.shape, x.strides, itemsize) for x in arrays)
    known = tuple(step for step in steps if step is not None)
    if len(known) < len(steps):
        return None
    return Walk(known, wide=max(arrays[0].size, *known) >= NARROW_LIMIT)


def dense_walk(*arrays: Any) -> Walk:
    """Return how to walk arrays whose elements are adjacent."""
    return Walk((1,) * len(arrays), wide=arrays[0].size >= NARROW_LIMIT)
