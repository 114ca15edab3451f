"""Arrays larger than a binding can have: what of them a kernel is given, and them in parts."""

from collections.abc import Iterator, Sequence
from typing import Any

from accel_lab.backends.wgpu.adapters import ALIGNMENT
from accel_lab.backends.wgpu.kernels.target import Target
from accel_lab.backends.wgpu.kernels.types import words_of
from accel_lab.backends.wgpu.support import bound
from accel_lab.display.sizes import size
from accel_lab.errors import InvalidArgument

Window = tuple[Any, int, int]


def window(device: Target, x: Any) -> tuple[Window, int]:
    """Return what of an array's buffer is bound, and where that begins, in elements.

    That is the buffer, or where it is too large the part in which the array's elements are.

    Raises:
        InvalidArgument: these are too far apart.
    """
    block = x.block
    if block.nbytes <= device.most_bound:
        return (block.buffer, 0, block.nbytes), 0
    first, count = span(x)
    step = 4 * words_of(x.name)
    start = first * step // ALIGNMENT * ALIGNMENT
    nbytes = max((first + count) * step - start, ALIGNMENT)
    if nbytes > device.most_bound:
        raise InvalidArgument(
            f"{x.name}{list(x.shape)} is {size(nbytes)} of a buffer, and {bound(device.most_bound)}"
        )
    nbytes = min(nbytes, block.nbytes - start)
    return (block.buffer, start, nbytes), start // step


def span(x: Any) -> tuple[int, int]:
    """Return where the first element in memory lies, and how many from there to the last."""
    if not x.size:
        return 0, 0
    steps = [
        step // x.dtype.itemsize * (extent - 1)
        for step, extent in zip(x.strides, x.shape, strict=True)
    ]
    before = sum(min(step, 0) for step in steps)
    return x.offset + before, sum(map(abs, steps)) + 1


def fits(device: Target, x: Any) -> bool:
    """Whether a binding can have it."""
    if x.block.nbytes <= device.most_bound:
        return True
    return span(x)[1] * 4 * words_of(x.name) <= device.most_bound - ALIGNMENT


def in_parts(device: Target, arrays: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield arrays of one shape, or the same parts of each, so that a binding can have each."""
    far = next((x for x in arrays if not fits(device, x)), None)
    if far is None:
        yield arrays
        return
    for part in halves(far, range(far.ndim)):
        yield from in_parts(device, [x[part] for x in arrays])


def halves(x: Any, axes: Sequence[int]) -> list[tuple[slice, ...]]:
    """Return the indices of two parts, along that of these axes on which it is farthest apart."""
    axis = max(axes, key=lambda one: abs(x.strides[one]) * (x.shape[one] - 1))
    middle = x.shape[axis] // 2
    before = (slice(None),) * axis
    return [(*before, slice(middle)), (*before, slice(middle, None))]
