"""Convolutions: `dnn` has them; uneven paddings are written around what is convolved."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_lab.libraries.array import library as array
from accel_lab.libraries.dnn import library as dnn
from accel_lab.onnx.node import Call
from accel_lab.onnx.operators.resizing import sampled
from accel_lab.onnx.registry import operator

MOST_EXTENTS = 3


@dataclass(frozen=True, slots=True)
class Slides:
    """How a window slides over extents; each field has a number for each extent."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def is_even(self) -> bool:
        """Whether as much is padded before as behind."""
        return self.before == self.after

    @property
    def widths(self) -> list[tuple[int, int]]:
        """What is padded, for `array.pad`."""
        return [(0, 0), (0, 0), *zip(self.before, self.after, strict=True)]


def slides(call: Call, window: tuple[int, ...], extents: tuple[int, ...]) -> Slides:
    """Return how the window of a node slides."""
    ndim = len(window)
    strides = tuple(call.get("strides") or (1,) * ndim)
    dilations = tuple(call.get("dilations") or (1,) * ndim)
    auto, pads = call.get("auto_pad", "NOTSET"), call.get("pads") or [0] * (2 * ndim)
    before, after = list(pads[:ndim]), list(pads[ndim:])
    if auto.startswith("SAME"):
        for k, (n, w, s, d) in enumerate(zip(extents, window, strides, dilations, strict=True)):
            total = max(0, (-(-n // s) - 1) * s + d * (w - 1) + 1 - n)
            small, large = total // 2, total - total // 2
            before[k], after[k] = (small, large) if auto == "SAME_UPPER" else (large, small)
    elif auto == "VALID":
        before, after = [0] * ndim, [0] * ndim
    return Slides(window, strides, dilations, tuple(before), tuple(after))


@operator("Conv")
def conv(call: Call, x: Any, w: Any, bias: Any = None) -> Any:
    """Convolve with filters, and add a bias for each."""
    how = slides(call, w.shape[2:], x.shape[2:])
    padding = how.before
    if not how.is_even:
        x, padding = array.pad(x, how.widths), (0,) * len(padding)
    return dnn.conv(
        x,
        w,
        bias,
        padding=padding,
        stride=how.strides,
        dilation=how.dilations,
        groups=call.get("group", 1),
    )


@operator("ConvTranspose")
def conv_transpose(call: Call, x: Any, w: Any, bias: Any = None) -> Any:
    """Convolve transposed: all that the filters reach, of which the paddings are cut off."""
    ndim, extents = x.ndim - 2, x.shape[2:]
    window = w.shape[2:]
    strides = tuple(call.get("strides") or (1,) * ndim)
    dilations = tuple(call.get("dilations") or (1,) * ndim)
    extra = tuple(call.get("output_padding") or (0,) * ndim)
    several = zip(extents, window, strides, dilations, strict=True)
    reached = [(n - 1) * s + d * (k - 1) + 1 for n, k, s, d in several]
    before, wanted = _cut(
        call, extents, strides, [n + e for n, e in zip(reached, extra, strict=True)]
    )
    made = dnn.conv_transpose(
        x, w, bias, stride=strides, dilation=dilations, groups=call.get("group", 1)
    )
    ends = [b + n for b, n in zip(before, wanted, strict=True)]
    more = [max(0, end - n) for end, n in zip(ends, reached, strict=True)]
    if any(more):  # which no filter reaches: it is the bias
        made = _widened(call, made, bias, more)
    return made[(..., *[slice(b, e) for b, e in zip(before, ends, strict=True)])]


def _cut(
    call: Call, extents: tuple[int, ...], strides: tuple[int, ...], full: list[int]
) -> tuple[list[int], list[int]]:
    """Return where the result begins in all that there is, and how long it is."""
    ndim, auto = len(extents), call.get("auto_pad", "NOTSET")
    wanted = call.get("output_shape")
    if wanted is None and auto.startswith("SAME"):
        wanted = [n * s for n, s in zip(extents, strides, strict=True)]
    if wanted is None:
        pads = call.get("pads") or [0] * (2 * ndim)
        before = list(pads[:ndim])
        several = zip(full, before, pads[ndim:], strict=True)
        return before, [n - b - a for n, b, a in several]
    wanted = list(wanted)[-ndim:]
    less = [max(0, n - k) for n, k in zip(full, wanted, strict=True)]
    first = [n // 2 if auto == "SAME_UPPER" else n - n // 2 for n in less]
    return first, wanted


def _widened(call: Call, made: Any, bias: Any, more: list[int]) -> Any:
    wide = array.pad(made, [(0, 0), (0, 0), *[(0, n) for n in more]])
    if bias is None:
        return wide
    channels = bias.reshape((1, -1, *[1] * len(more)))
    whole = array.broadcast_to(channels, wide.shape)
    whole[(..., *[slice(n) for n in made.shape[2:]])] = made
    return whole


@operator("DeformConv")
def deform_conv(call: Call, x: Any, w: Any, offset: Any, bias: Any = None, mask: Any = None) -> Any:
    """Convolve with a window each of whose elements is moved by an offset of its own."""
    how = slides(call, w.shape[2:], x.shape[2:])
    groups, parts = call.get("group", 1), call.get("offset_group", 1)
    (n, channels, _, _), (filters, each, kh, kw) = x.shape, w.shape
    height, width = offset.shape[2:]
    moved = offset.reshape((n, parts, kh * kw, 2, height, width))
    rows, columns = _places(call, how, (kh, kw), (height, width))
    y = moved[:, :, :, 0] + rows
    z = moved[:, :, :, 1] + columns
    taps = sampled(call, x.reshape((n * parts, channels // parts, *x.shape[2:])), y, z, n * parts)
    taps = taps.reshape((n, parts, channels // parts, kh * kw, height * width))
    if mask is not None:
        taps = taps * mask.reshape((n, parts, 1, kh * kw, height * width))
    taps = taps.reshape((n, groups, channels // groups * kh * kw, height * width))
    flat = w.reshape((groups, filters // groups, each * kh * kw))
    made = array.matmul(flat, taps).reshape((n, filters, height, width))
    return made if bias is None else made + bias.reshape((1, -1, 1, 1))


def _places(
    call: Call, how: Slides, window: tuple[int, int], places: tuple[int, int]
) -> tuple[Any, Any]:
    """Return where the elements of the window lie, before they are moved."""
    rows = [np.arange(p) * s - b for p, s, b in zip(places, how.strides, how.before, strict=True)]
    steps = [np.arange(k) * d for k, d in zip(window, how.dilations, strict=True)]
    shape = (1, 1, window[0] * window[1], places[0], places[1])
    y = steps[0][:, None, None, None] + rows[0][None, None, :, None]
    x = steps[1][None, :, None, None] + rows[1][None, None, None, :]
    whole = (*window, *places)
    made = [np.broadcast_to(one, whole).reshape(shape).astype(np.float32) for one in (y, x)]
    return call.ref(made[0]), call.ref(made[1])
