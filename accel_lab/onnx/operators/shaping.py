"""Shapes changed, parts taken, tensors joined."""

import math
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.onnx.node import Call, Node
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, dtype_of, ints


@operator("Reshape", host=(1,), anywhere=True)
def reshape(call: Call, x: Any, shape: Any) -> Any:
    """Return another shape, in which 0 stands for the extent that there was."""
    extents = list(ints(shape)) if shape.size else []
    if not call.get("allowzero", 0):
        extents = [x.shape[at] if n == 0 else n for at, n in enumerate(extents)]
    if -1 in extents and 0 in extents:  # what is left is nothing of nothing
        rest = math.prod(n for n in extents if n > 0)
        extents[extents.index(-1)] = x.size // rest if 0 not in x.shape else 0
    return x.reshape(tuple(extents))


@operator("Flatten", anywhere=True)
def flatten(call: Call, x: Any) -> Any:
    """Return a matrix: the axes before one, and those from it on."""
    at = axis_from_0(call.get("axis", 1), x.ndim)
    return x.reshape((math.prod(x.shape[:at]), math.prod(x.shape[at:])))


@operator("Transpose", anywhere=True)
def transpose(call: Call, x: Any) -> Any:
    """Return the axes in another order."""
    order = call.get("perm")
    return x.transpose(tuple(reversed(range(x.ndim))) if order is None else tuple(order))


def axes_given(call: Call, axes: Any) -> tuple[int, ...] | None:
    """Return axes, which are an attribute or, in later versions, an input."""
    if axes is not None:
        return ints(axes) if axes.size else ()
    given = call.get("axes")
    return None if given is None else tuple(given)


@operator("Squeeze", host=(1,), anywhere=True)
def squeeze(call: Call, x: Any, axes: Any = None) -> Any:
    """Return a view without axes of length 1."""
    return call.xp.squeeze(x, axes_given(call, axes))


@operator("Unsqueeze", host=(1,), anywhere=True)
def unsqueeze(call: Call, x: Any, axes: Any = None) -> Any:
    """Return a view with axes of length 1 more."""
    return call.xp.expand_dims(x, axes_given(call, axes) or ())


@operator("Concat", anywhere=True)
def concat(call: Call, *xs: Any) -> Any:
    """Return tensors joined along an axis."""
    return call.xp.concatenate(xs, axis=call.get("axis"))


@operator("Split", host=(1,), anywhere=True)
def split(call: Call, x: Any, lengths: Any = None) -> Any:
    """Return parts of these lengths, or of equal ones, of which the last may be shorter."""
    at = axis_from_0(call.get("axis", 0), x.ndim)
    given = call.get("split") if lengths is None else ints(lengths)
    extent = x.shape[at]
    if given is None:
        count = call.get("num_outputs", len(call.node.outputs))
        each = -(-extent // count)
        given = [min(each, max(0, extent - each * k)) for k in range(count)]
    if sum(given) != extent:
        raise InvalidArgument(f"Split: {list(given)} is not {extent}, the extent of axis {at}")
    whole = (slice(None),) * at
    ends = accumulate(given, initial=0)
    return tuple(x[(*whole, slice(begin, end))] for begin, end in pairwise(ends))


@operator("Expand", host=(1,), anywhere=True)
def expand(call: Call, x: Any, shape: Any) -> Any:
    """Return a tensor broadcast with a shape."""
    wanted = np.broadcast_shapes(x.shape, ints(shape) if shape.size else ())
    return x if x.shape == wanted else call.xp.broadcast_to(x, wanted)


@operator("Tile", host=(1,), anywhere=True)
def tile(call: Call, x: Any, repeats: Any) -> Any:
    """Return a tensor several times along each axis."""
    return call.xp.tile(x, ints(repeats))


@operator("Slice", host=(1, 2, 3, 4), anywhere=True, since=10)
def part(call: Call, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """Return a part: along some axes from one place to another, in steps."""
    count = starts.size
    along = range(count) if axes is None else ints(axes)
    by = (1,) * count if steps is None else ints(steps)
    index = [slice(None)] * x.ndim
    for at, start, end, step in zip(along, ints(starts), ints(ends), by, strict=True):
        index[axis_from_0(at, x.ndim)] = _within(start, end, step, x.shape[at])
    return x[tuple(index)]


def _within(start: int, end: int, step: int, extent: int) -> slice:
    """Return a slice whose ends are led inside as ONNX has it: counting down it begins at 0."""
    begin, stop = axis_from_0(start, extent), axis_from_0(end, extent)
    if step > 0:
        return slice(max(begin, 0), max(stop, 0), step)
    begin = min(max(begin, 0), extent - 1)
    return slice(begin, None if stop < 0 else stop, step) if extent else slice(0, 0)


def _no_mode(node: Node) -> str | None:
    mode = node.get("mode", "constant")
    return None if mode in ("constant", "reflect", "edge", "wrap") else f"mode {mode!r}"


@operator("Pad", host=(1, 3), anywhere=True, since=11, refuses=_no_mode)
def padding(call: Call, x: Any, pads: Any, value: Any = None, axes: Any = None) -> Any:
    """Return a tensor with more at its ends, or, by numbers below 0, less."""
    along = range(x.ndim) if axes is None else [axis_from_0(n, x.ndim) for n in ints(axes)]
    given, mode = ints(pads), call.get("mode", "constant")
    widths = [(0, 0)] * x.ndim
    for k, at in enumerate(along):
        widths[at] = (given[k], given[k + len(given) // 2])
    cut = x[
        tuple(slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, x.shape, strict=True))
    ]
    more = [(max(0, a), max(0, b)) for a, b in widths]
    if mode != "constant":
        return call.xp.pad(cut, more, mode)
    number = 0 if value is None else value.reshape(())
    return padded(call, cut, more, number)


def padded(call: Call, x: Any, widths: list[tuple[int, int]], number: Any) -> Any:
    """Return a tensor with a number at its ends."""
    if call.xp is np:
        return np.pad(x, widths, constant_values=number)
    if not hasattr(number, "dtype") or isinstance(number, np.ndarray):
        return array.pad(x, widths, constant_values=number)
    # A number of the device: it is written around what is padded.
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True))
    made = array.broadcast_to(number, shape)
    made[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))] = x
    return made


@operator("DepthToSpace")
def depth_to_space(call: Call, x: Any) -> Any:
    """Return blocks of extents made of channels."""
    (n, c, h, w), b = x.shape, call.get("blocksize")
    if call.get("mode", "DCR") == "DCR":
        parts = x.reshape((n, b, b, c // (b * b), h, w)).transpose((0, 3, 4, 1, 5, 2))
    else:
        parts = x.reshape((n, c // (b * b), b, b, h, w)).transpose((0, 1, 4, 2, 5, 3))
    return parts.reshape((n, c // (b * b), h * b, w * b))


@operator("SpaceToDepth")
def space_to_depth(call: Call, x: Any) -> Any:
    """Return channels made of blocks of extents."""
    (n, c, h, w), b = x.shape, call.get("blocksize")
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = x.reshape((n, c, h // b, b, w // b, b)).transpose(order)
    return parts.reshape((n, c * b * b, h // b, w // b))


@operator("Trilu", host=(1,), anywhere=True)
def trilu(call: Call, x: Any, k: Any = None) -> Any:
    """Return the upper or the lower triangles."""
    keep = call.xp.triu if call.get("upper", 1) else call.xp.tril
    return keep(x, 0 if k is None else int(k.reshape(())))


@operator("ReverseSequence", host=(1,))
def reverse_sequence(call: Call, x: Any, lengths: Any) -> Any:
    """Return each sequence of a batch with its first elements in reverse."""
    time, batch = call.get("time_axis", 0), call.get("batch_axis", 1)
    steps, extent = np.arange(x.shape[time]), lengths.reshape(-1, 1)
    places = np.where(steps < extent, extent - 1 - steps, steps)
    shape = [1] * x.ndim
    shape[batch], shape[time] = x.shape[batch], x.shape[time]
    index = call.ref((places if batch < time else places.T).reshape(shape))
    return array.take_along_axis(x, index, axis=time)


@operator("Compress", host=(1,), anywhere=True)
def compress(call: Call, x: Any, condition: Any) -> Any:
    """Return the elements along an axis for which a condition holds."""
    axis = call.get("axis")
    flat = x.reshape(-1) if axis is None else x
    return call.xp.take(flat, np.flatnonzero(condition), axis=0 if axis is None else axis)


@operator("Col2Im", host=(1, 2))
def col2im(call: Call, x: Any, image: Any, block: Any) -> Any:
    """Return an image of overlapping blocks, whose elements are added."""
    extents, window = ints(image), ints(block)
    ndim = len(extents)
    dilations = call.get("dilations") or [1] * ndim
    strides, pads = call.get("strides") or [1] * ndim, call.get("pads") or [0] * (2 * ndim)
    wide = [n + pads[k] + pads[k + ndim] for k, n in enumerate(extents)]
    several = zip(wide, window, dilations, strides, strict=True)
    places = [(n - d * (k - 1) - 1) // s + 1 for n, k, d, s in several]
    n, channels = x.shape[0], x.shape[1] // math.prod(window)
    columns = x.reshape((n, channels, *window, *places))
    made = array.zeros(call.device, (n, channels, *wide), dtype_of(x))
    for at in np.ndindex(*window):
        several = zip(at, dilations, strides, places, strict=True)
        index = (..., *[slice(i * d, i * d + s * (p - 1) + 1, s) for i, d, s, p in several])
        here = (slice(None), slice(None), *at)
        made[index] = made[index] + columns[here]
    inside = [slice(pads[k], pads[k] + n) for k, n in enumerate(extents)]
    return made[(..., *inside)]


@operator("NonZero", anywhere=True)
def nonzero(call: Call, x: Any) -> Any:
    """Return where elements are not zero: a row for each axis."""
    if x.ndim == 0:
        return call.xp.zeros((0, 1), "int64") if call.xp is np else call.ref(np.zeros((0, 1), int))
    return call.xp.stack(call.xp.nonzero(x))


@operator("CenterCropPad", host=(1,), anywhere=True)
def center_crop_pad(call: Call, x: Any, shape: Any) -> Any:
    """Return the middle of a tensor, or zeros around it, along some axes."""
    axes = call.get("axes") or range(x.ndim)
    widths, index = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
    for axis, wanted in zip(axes, ints(shape), strict=True):
        at, extent = axis_from_0(axis, x.ndim), x.shape[axis]
        more = wanted - extent
        if more >= 0:
            widths[at] = (more // 2, more - more // 2)
        else:
            begin = -more // 2
            index[at] = slice(begin, begin + wanted)
    return padded(call, x[tuple(index)], widths, 0)
