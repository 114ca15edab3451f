"""Pooling of one to three extents: the maximum or the average of each window.

`window`, `stride` (the window, if nothing is said), `padding` and `dilation` are an integer for
each extent, or one for all. The padding is at most half a window, and never a maximum.
"""

from typing import Any

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import named, one_dtype
from accel_lab.libraries.authoring.options import Ints, Options
from accel_lab.libraries.dnn.convolution import require_places
from accel_lab.libraries.dnn.message import (
    LAYOUTS,
    DataLayout,
    Layer,
    as_layout,
    channels_first,
    of_ints,
    refusal,
    require_choice,
    require_shape,
    spec_of,
)
from accel_lab.libraries.dnn.windows import Windows, windows


class Pool(Layer[AccelRef], frozen=True):
    """What the messages that pool have in common."""

    x: AccelRef
    window: Ints
    _: Options
    stride: Ints = ()
    padding: Ints = (0,)
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return as many places as the window has."""
        return spec_of(self, pooled(self, self.x), self.x.dtype, self.x)


class MaxPool(Pool, frozen=True, tag=640):
    """Return the maximum of each window; NaN is more than any number."""

    _: Options
    dilation: Ints = (1,)


class MaxPoolGradient(Layer[AccelRef], frozen=True, tag=641):
    """Return the gradient of `MaxPool` by `x`: all of it goes to a window's first maximum."""

    x: AccelRef
    dy: AccelRef
    window: Ints
    _: Options
    stride: Ints = ()
    padding: Ints = (0,)
    dilation: Ints = (1,)
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of what was pooled."""
        require_shape(self, self.dy, pooled(self, self.x))
        return spec_of(self, self.x.shape, one_dtype(self, self.x, self.dy), self.x, self.dy)


class AveragePool(Pool, frozen=True, tag=642):
    """Return the average of each window, with its padding counted as zeros or not."""

    _: Options
    count_padding: bool = True


class AveragePoolGradient(Layer[AccelRef], frozen=True, tag=643):
    """Return the gradient of `AveragePool` by what was pooled, which had these `extents`."""

    dy: AccelRef
    extents: Ints
    window: Ints
    _: Options
    stride: Ints = ()
    padding: Ints = (0,)
    count_padding: bool = True
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of what was pooled."""
        slides = of_pooling(self, self.dy)
        shape = channels_first(self.dy.shape, self.layout)
        extents = of_ints(self, "extents")
        fits = len(extents) == len(slides.window) and min(extents) >= 0
        places = slides.places(extents) if fits else None
        if places != shape[2:]:
            text = f"extents {extents} makes {places} places, and {named(self, self.dy)}"
            raise refusal(self, text)
        made = as_layout((*shape[:2], *extents), self.layout)
        return spec_of(self, made, self.dy.dtype, self.dy)


def of_pooling(message: Any, ref: AccelRef) -> Windows:
    """Return the windows of a message that pools.

    Raises:
        InvalidArgument: an option does not fit the operand.
    """
    require_choice(message, "layout", LAYOUTS)
    if ref.ndim != len(message.window) + 2:
        text = f"{named(message, ref)}, and window is {message.window}"
        raise refusal(message, f"{text}; its extents are those behind batch and channels")
    slides = windows(message, message.window)
    several = zip(slides.window, slides.padding, slides.dilation, strict=True)
    if any(2 * p > d * (k - 1) + 1 for k, p, d in several):
        text = f"padding {slides.padding} is more than half of the window {slides.window}"
        raise refusal(message, text)
    return slides


def pooled(message: Any, ref: AccelRef) -> tuple[int, ...]:
    """Return the shape of what is pooled.

    Raises:
        InvalidArgument: an option does not fit the operand.
    """
    slides = of_pooling(message, ref)
    shape = channels_first(ref.shape, message.layout)
    if min(shape[2:]) < 1:
        raise refusal(message, f"{named(message, ref)}; an extent of 0 has nothing to pool")
    places = require_places(message, slides, ref, shape[2:])
    return as_layout((*shape[:2], *places), message.layout)


max_pool = function(MaxPool)
max_pool_gradient = function(MaxPoolGradient)
average_pool = function(AveragePool)
average_pool_gradient = function(AveragePoolGradient)
