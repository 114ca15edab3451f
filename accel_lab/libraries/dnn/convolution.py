"""Convolutions of one to three extents, and their gradients.

As in networks, a window is not turned around: what is computed is a correlation. Arrays are
(batch, channels, extents...), filters (filters, channels / groups, window...). With the layout
"channels_last" arrays are (batch, extents..., channels), and filters (filters, window..., channels
/ groups). `padding`, `stride` and `dilation` are an integer for each extent, or one for all.
"""

from typing import Any

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, named, one_dtype
from accel_lab.libraries.authoring.options import Ints, Options
from accel_lab.libraries.dnn.activation import CONV_ACTIVATIONS
from accel_lab.libraries.dnn.message import (
    LAYOUTS,
    DataLayout,
    Layer,
    as_layout,
    channels_first,
    of_ints,
    refusal,
    require_choice,
    require_int,
    require_shape,
    spec_of,
)
from accel_lab.libraries.dnn.windows import MOST_EXTENTS, Windows, windows


class Conv(Layer[AccelRef], frozen=True, tag=620):
    """Convolve with filters, and on request add a bias for each filter and apply an activation.

    `activation` is "identity" or one of `activate`, with its usual number. On `cuda` cuDNN may
    round the sum to the dtype before bias and activation.
    """

    x: AccelRef
    w: AccelRef
    bias: AccelRef | None = None
    _: Options
    padding: Ints = (0,)
    stride: Ints = (1,)
    dilation: Ints = (1,)
    groups: int = 1
    layout: DataLayout = "channels_first"
    activation: str = "identity"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return as many places as the window has, for each filter."""
        x, w = of_convolution(self, self.x, self.w)
        require_choice(self, "activation", CONV_ACTIVATIONS)
        one_dtype(self, self.x, self.w, self.bias)
        require_shape(self, self.bias, (w[0],))
        require_channels(self, self.x, x, self.w, w)
        places = require_places(self, windows(self, w[2:]), self.x, x[2:])
        shape = as_layout((x[0], w[0], *places), self.layout)
        return spec_of(self, shape, self.x.dtype, self.x, self.w, self.bias)


class ConvDataGradient(Layer[AccelRef], frozen=True, tag=621):
    """Return the gradient of a convolution by its input, of that by its result.

    `extents` are those of the input, without batch and channels.
    """

    dy: AccelRef
    w: AccelRef
    extents: Ints
    _: Options
    padding: Ints = (0,)
    stride: Ints = (1,)
    dilation: Ints = (1,)
    groups: int = 1
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of what was convolved."""
        dy, w = of_convolution(self, self.dy, self.w)
        one_dtype(self, self.dy, self.w)
        require_filters(self, self.dy, dy, self.w, w)
        slides = windows(self, w[2:])
        extents = of_ints(self, "extents")
        require_extents(self, "extents", extents, dy, slides.places)
        shape = as_layout((dy[0], w[1] * self.groups, *extents), self.layout)
        return spec_of(self, shape, self.dy.dtype, self.dy, self.w)


class ConvFilterGradient(Layer[AccelRef], frozen=True, tag=622):
    """Return the gradient of a convolution by its filters, of that by its result.

    `window` are the extents of a filter, without channels.
    """

    x: AccelRef
    dy: AccelRef
    window: Ints
    _: Options
    padding: Ints = (0,)
    stride: Ints = (1,)
    dilation: Ints = (1,)
    groups: int = 1
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of the filters."""
        x, dy = of_convolution(self, self.x, self.dy)
        one_dtype(self, self.x, self.dy)
        window = of_ints(self, "window")
        slides = windows(self, window)
        if x[0] != dy[0] or len(window) != len(x) - 2:
            text = f"{named(self, self.x)} and {named(self, self.dy)}, and window {window}"
            raise refusal(self, f"{text}; batches and the number of extents are to be equal")
        if x[1] % self.groups or dy[1] % self.groups:
            text = f"{named(self, self.x)} and {named(self, self.dy)}"
            raise refusal(self, f"{text}, whose channels are no multiples of groups={self.groups}")
        require_extents(self, "x", x[2:], dy, slides.places)
        shape = as_layout((dy[1], x[1] // self.groups, *window), self.layout)
        return spec_of(self, shape, self.x.dtype, self.x, self.dy)


class ConvTranspose(Layer[AccelRef], frozen=True, tag=623):
    """Convolve transposed: the gradient of a convolution by its input, and on request a bias.

    `w` is the filter of that convolution, (channels of x, channels of the result / groups,
    window...). `extra` are elements more at the end of each extent, fewer than the stride or the
    dilation.
    """

    x: AccelRef
    w: AccelRef
    bias: AccelRef | None = None
    _: Options
    padding: Ints = (0,)
    stride: Ints = (1,)
    dilation: Ints = (1,)
    extra: Ints = (0,)
    groups: int = 1
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the extents that the convolution would make those of `x`."""
        x, w = of_convolution(self, self.x, self.w)
        one_dtype(self, self.x, self.w, self.bias)
        require_filters(self, self.x, x, self.w, w)
        channels = w[1] * self.groups
        require_shape(self, self.bias, (channels,))
        extents = self.extents()
        if min(extents) < 1:
            raise refusal(self, f"{named(self, self.x)}, of which would come extents {extents}")
        shape = as_layout((x[0], channels, *extents), self.layout)
        return spec_of(self, shape, self.x.dtype, self.x, self.w, self.bias)

    def extents(self) -> tuple[int, ...]:
        """Return the extents of the result.

        Raises:
            InvalidArgument: `extra` does not fit.
        """
        x, w = of_convolution(self, self.x, self.w)
        slides = windows(self, w[2:])
        said = of_ints(self, "extra")
        extra = said * len(slides.window) if len(said) == 1 else said
        limits = [max(s, d) for s, d in zip(slides.stride, slides.dilation, strict=True)]
        if len(extra) != len(limits) or any(
            type(n) is not int or not 0 <= n < limit for n, limit in zip(extra, limits, strict=True)
        ):
            text = f"extra is {self.extra!r}; it is an integer below {limits} for each extent"
            raise refusal(self, text)
        return tuple([n + e for n, e in zip(slides.covered(x[2:]), extra, strict=True)])


def of_convolution(
    message: Any, first: AccelRef, second: AccelRef
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of two operands, with channels behind the first axis.

    Raises:
        InvalidArgument: they have different numbers of axes, or the options do not fit.
    """
    require_choice(message, "layout", LAYOUTS)
    require_int(message, "groups", 1)
    if first.ndim != second.ndim or not 1 <= first.ndim - 2 <= MOST_EXTENTS:
        text = f"{named(message, first)} and {named(message, second)}"
        raise refusal(message, f"{text}; both are to have 3 to 5 axes, and as many")
    layout = message.layout
    return channels_first(first.shape, layout), channels_first(second.shape, layout)


def require_channels(
    message: Any, ref: AccelRef, x: tuple[int, ...], of: AccelRef, w: tuple[int, ...]
) -> None:
    """Refuse filters of other channels, or that cannot be shared out to the groups.

    Raises:
        InvalidArgument: they do not fit.
    """
    groups = message.groups
    if x[1] != w[1] * groups or w[0] % groups:
        text = f"{named(message, ref)} has {x[1]} channels, and {named(message, of)}"
        wanted = f"filters of {x[1]}/{groups} channels, as many as groups={groups} share evenly"
        raise refusal(message, f"{text}; wanted are {wanted}")


def require_filters(
    message: Any, ref: AccelRef, dy: tuple[int, ...], of: AccelRef, w: tuple[int, ...]
) -> None:
    """Refuse another number of filters, or such as cannot be shared out to the groups.

    Raises:
        InvalidArgument: they do not fit.
    """
    if dy[1] != w[0] or w[0] % message.groups:
        text = f"{named(message, ref)} has {dy[1]} channels, and {named(message, of)} {w[0]}"
        raise refusal(message, f"{text} filters; a multiple of groups={message.groups} is wanted")


def require_places(
    message: Any, slides: Windows, ref: AccelRef, extents: tuple[int, ...]
) -> tuple[int, ...]:
    """Return at how many places the window fits.

    Raises:
        InvalidArgument: it is larger than what it slides over.
    """
    places = slides.places(extents)
    if min(places) < 1:
        text = f"the window {slides.window} with dilation {slides.dilation} does not fit into"
        raise refusal(message, f"{text} {describe(ref)} with padding {slides.padding}")
    return places


def require_extents(
    message: Any, name: str, extents: tuple[int, ...], dy: tuple[int, ...], places: Any
) -> None:
    """Refuse extents that do not have as many places as the gradient says.

    Raises:
        InvalidArgument: they do not.
    """
    fits = len(extents) == len(dy) - 2 and all(type(n) is int and n >= 0 for n in extents)
    made = places(extents) if fits else None
    if made != dy[2:]:
        text = f"{name} {extents} makes {made} places, and dy has {dy[2:]}"
        raise refusal(message, text)


conv = function(Conv)
conv_data_gradient = function(ConvDataGradient)
conv_filter_gradient = function(ConvFilterGradient)
conv_transpose = function(ConvTranspose)
