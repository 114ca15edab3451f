"""Convolutions of images and their gradients, as products whose matrices are never made.

Arrays are (batch, height, width, channels), filters (filters, height, width, channels). As in
networks, a window is not turned around. `padding`, `stride` and `dilation` are an integer for
height and width, or one for both.
"""

from math import prod
from typing import Any, ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import Number, describe, element, one_dtype
from accel_lab.libraries.authoring.options import Factor, Ints, Options
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.cutlass.message import Epilogue, refusal, require_epilogue
from accel_lab.libraries.dnn.convolution import (
    of_convolution,
    require_channels,
    require_extents,
    require_filters,
    require_places,
)
from accel_lab.libraries.dnn.message import as_layout, of_ints, require_shape, spec_of
from accel_lab.libraries.dnn.windows import Windows, windows

MOST_OF_WINDOW = 32
"""CUTLASS has a bit for each row and column of a filter."""
MOST_ELEMENTS = 2**31 - 1
_AXES = 4


class OfImages(Shaped[AccelRef], frozen=True, array_like=True, eq=False):
    """A message about images whose channels are last, summed in float32 and rounded once."""

    library: ClassVar[str] = "cutlass"
    dtypes: ClassVar = frozenset({"float16", "bfloat16", "float32"})
    layout: ClassVar = "channels_last"
    groups: ClassVar = 1


class Conv(OfImages, frozen=True, tag=742):
    """Convolve images: epilogue(scale conv(x, w) + bias), in one pass.

    `bias` has a number for each filter; ends are those of `Gemm`.
    """

    x: AccelRef
    w: AccelRef
    bias: AccelRef | None = None
    _: Options
    padding: Ints = (0,)
    stride: Ints = (1,)
    dilation: Ints = (1,)
    scale: Factor = 1
    epilogue: Epilogue = "identity"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return as many places as the window has, for each filter."""
        require_images(self, self.x, self.w)
        require_epilogue(self)
        x, w = of_convolution(self, self.x, self.w)
        one_dtype(self, self.x, self.w, self.bias)
        element(self, "scale", self.scale, self.x.dtype)
        require_shape(self, self.bias, (w[0],))
        require_channels(self, self.x, x, self.w, w)
        slides = window_of(self, w[2:])
        places = require_places(self, slides, self.x, x[2:])
        require_reach(self, slides, x[2:], x[1])
        return _made(self, (x[0], w[0], *places), self.x, self.w, self.bias)


class ConvDataGradient(OfImages, frozen=True, tag=743):
    """Return the gradient of a convolution of images by its input, of that by its result.

    `extents` are height and width of the input. `scale` multiplies it. On `cuda` zeros stand where
    the window meets no element of `dy`, so an infinite number or NaN in `w` makes NaN there.
    """

    dy: AccelRef
    w: AccelRef
    extents: Ints
    _: Options
    padding: Ints = (0,)
    stride: Ints = (1,)
    dilation: Ints = (1,)
    scale: Factor = 1
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of what was convolved."""
        require_images(self, self.dy, self.w)
        dy, w = of_convolution(self, self.dy, self.w)
        one_dtype(self, self.dy, self.w)
        element(self, "scale", self.scale, self.dy.dtype)
        require_filters(self, self.dy, dy, self.w, w)
        extents = of_ints(self, "extents")
        slides = window_of(self, w[2:])
        require_extents(self, "extents", extents, dy, slides.places)
        require_reach(self, slides, extents, max(w[:2]))
        everywhere = slides._replace(stride=(1,) * len(w[2:])).places(extents)
        require_room(self, (dy[0], *(max(n, 0) for n in everywhere), dy[1]))
        return _made(self, (dy[0], w[1], *extents), self.dy, self.w)


class ConvFilterGradient(OfImages, frozen=True, tag=744):
    """Return the gradient of a convolution of images by its filters, of that by its result.

    `window` are height and width of a filter. `scale` multiplies it.
    """

    x: AccelRef
    dy: AccelRef
    window: Ints
    _: Options
    padding: Ints = (0,)
    stride: Ints = (1,)
    dilation: Ints = (1,)
    scale: Factor = 1
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of the filters."""
        require_images(self, self.x, self.dy)
        x, dy = of_convolution(self, self.x, self.dy)
        one_dtype(self, self.x, self.dy)
        element(self, "scale", self.scale, self.x.dtype)
        window = of_ints(self, "window")
        if x[0] != dy[0] or len(window) != len("hw"):
            text = f"x is {describe(self.x)}, dy {describe(self.dy)}, and window {window}"
            raise refusal(self, f"{text}; batches are to be equal, and a window has two extents")
        slides = window_of(self, window)
        require_extents(self, "x", x[2:], dy, slides.places)
        require_reach(self, slides, x[2:], x[1])
        return _made(self, (dy[1], x[1], *window), self.x, self.dy)


def require_images(message: Any, *refs: AccelRef) -> None:
    """Refuse what is no image, and one that is too large.

    Raises:
        InvalidArgument: it has not four axes, or too many elements.
    """
    for ref in refs:
        if ref.ndim != _AXES:
            text = f"{describe(ref)} has {ref.ndim} axes"
            raise refusal(message, f"{text}; images and filters have 4, the channels last")
        require_room(message, ref.shape)


def require_room(message: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array whose elements CUTLASS cannot count, once channels are rounded up.

    Raises:
        InvalidArgument: it is too large.
    """
    first, *extents, last = shape
    if _rounded(first) * prod(extents) * max(_rounded(last), 8) > MOST_ELEMENTS:
        text = f"an array {list(shape)} with channels and filters in eights"
        raise refusal(message, f"{text} has more than {MOST_ELEMENTS} elements; use dnn")


def require_reach(message: Any, slides: Windows, extents: tuple[int, ...], channels: int) -> None:
    """Refuse options by which CUTLASS's 32-bit steps could be too far: a padded image has room.

    Raises:
        InvalidArgument: they are too large.
    """
    if max(*slides.padding, *slides.stride, *slides.dilation) > MOST_ELEMENTS:
        raise refusal(message, f"an option is above {MOST_ELEMENTS}; use dnn")
    padded = (max(n, 0) + 2 * p for n, p in zip(extents, slides.padding, strict=True))
    require_room(message, (1, *padded, channels))


def _rounded(extent: int) -> int:
    return -(-extent // 8) * 8


def window_of(message: Any, window: tuple[int, ...]) -> Windows:
    """Return the windows of a message.

    Raises:
        InvalidArgument: an option does not fit, or a window is larger than CUTLASS's masks.
    """
    slides = windows(message, window)
    if max(window) > MOST_OF_WINDOW:
        raise refusal(message, f"the window is {window}; at most {MOST_OF_WINDOW} each; use dnn")
    return slides


def scale_of(message: Conv | ConvDataGradient | ConvFilterGradient, dtype: str) -> Number:
    """Return what sums are multiplied by."""
    return element(message, "scale", message.scale, dtype)


def _made(message: Any, shape: tuple[int, ...], *operands: AccelRef | None) -> Spec:
    first = operands[0]
    assert first is not None
    made = as_layout(shape, "channels_last")
    require_room(message, made)
    return spec_of(message, made, first.dtype, *operands)


conv = function(Conv)
conv_data_gradient = function(ConvDataGradient)
conv_filter_gradient = function(ConvFilterGradient)
