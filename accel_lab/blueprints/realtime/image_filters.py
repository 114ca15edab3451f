"""Filters over images, one behind the other: an actor that keeps the list and its weights."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime.checks import require_buffer, require_count, require_number
from accel_lab.blueprints.realtime.kernels import Kernels
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array, primitives

WIDEST = 1023
LEAST_SIGMA = 1e-15
"""Its square has a reciprocal in float32."""
CHANNELS = (1, 3, 4)


class Separable(NamedTuple):
    """Correlate along the columns, and then along the rows; each has an odd number of weights."""

    down: ArrayLike
    across: ArrayLike


class Correlate(NamedTuple):
    """Correlate with weights (rows, columns); both are odd."""

    weights: ArrayLike


class Sobel(NamedTuple):
    """Take the length of Sobel's gradient, in each channel."""


class Bilateral(NamedTuple):
    """Blur, but not over edges: by distance and by difference, within `radius` pixels."""

    radius: int
    sigma_place: float
    sigma_value: float


class Equalise(NamedTuple):
    """Spread values from `low` to `high` so that each is as frequent; all channels together."""

    bins: int = 256
    low: float = 0.0
    high: float = 1.0


Filter = Separable | Correlate | Sobel | Bilateral | Equalise


class SetFilters(Message[None], frozen=True):
    """Use these filters, in this order, from the next image on."""

    filters: tuple[Filter, ...]


class FilterImage(Message[AccelRef], frozen=True):
    """Filter an image, (height, width) or (height, width, channels), into a new one."""

    image: AccelRef


class FilterKernels:
    """Runs single filters on one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.kernels = Kernels(device, "image")

    def weights(self, one: Filter) -> tuple[AccelRef, ...]:
        """Check a filter, and put its weights on the device."""
        return tuple(self.device.put(some) for some in weights_of(one))

    def filtered(self, image: AccelRef, one: Filter, weights: tuple[AccelRef, ...]) -> AccelRef:
        """Send one filter; `weights` are its own. Does not block."""
        height, width, channels = (*image.shape, 1)[:3]
        extents = height, width, channels
        launch = self.kernels.launch
        out = array.zeros(self.device, image.shape, "float32")
        if isinstance(one, Separable | Correlate):
            for part in weights:
                out = array.zeros(self.device, image.shape, "float32")
                launch("correlate", image.size, image, *extents, part, *part.shape, out)
                image = out
        elif isinstance(one, Sobel):
            launch("sobel", image.size, image, *extents, out)
        elif isinstance(one, Bilateral):
            by_place, by_value = (0.5 / (sigma * sigma) for sigma in one[1:])
            numbers = one.radius, by_place, by_value
            launch("bilateral", height * width, image, *extents, *numbers, out)
        else:
            flat = array.clip(image.reshape(-1), one.low, one.high)
            counts = primitives.histogram_even(flat, one.bins, one.low, one.high)
            below = primitives.scan(array.cast(counts, "int64"))
            numbers = one.bins, one.low, one.high
            launch("equalise", image.size, image, image.size, below, *numbers, out)
        return out


class ImageFilterPipeline(Actor):
    """Filters float32 images of 1, 3 or 4 channels; what lies beyond an edge is mirrored.

    Parameters:
        filters: `Separable`, `Correlate`, `Sobel`, `Bilateral` and `Equalise`, the first one first.
    """

    def __init__(self, device: Device, *filters: Filter) -> None:
        self.device = device
        self.kernels = FilterKernels(device)
        self.filters: tuple[Filter, ...] = ()
        self.weights: list[tuple[AccelRef, ...]] = []
        self.set_filters(SetFilters(filters))

    @handles(SetFilters)
    def set_filters(self, m: SetFilters) -> None:
        """Check all of them, and put their weights on the device."""
        self.weights = [self.kernels.weights(one) for one in m.filters]
        self.filters = tuple(m.filters)

    @handles(FilterImage)
    def apply(self, m: FilterImage) -> AccelRef:
        """Send one filter after the other."""
        image = require_image("FilterImage: image", m.image, self.device)
        if not self.filters:
            return image.copy()
        for one, weights in zip(self.filters, self.weights, strict=True):
            image = self.kernels.filtered(image, one, weights)
        return image


def require_image(what: str, found: AccelRef, device: Device) -> AccelRef:
    """Return an image of a device: float32, (height, width) or (height, width, channels).

    Raises:
        InvalidArgument: it is none, or has no pixels, or not 1, 3 or 4 channels.
    """
    shape: tuple[str, ...] = ("height", "width", "channels")
    if len(getattr(found, "shape", ())) == 2:  # noqa: PLR2004 - an image
        shape = shape[:2]
    image = require_buffer(what, found, device, shape, "float32")
    if 0 in image.shape or (len(shape) > 2 and image.shape[2] not in CHANNELS):  # noqa: PLR2004
        extents = ", ".join(map(str, image.shape))
        raise InvalidArgument(
            f"{what} must have pixels, of 1, 3 or 4 channels, not float32[{extents}]"
        )
    return image


def weights_of(one: Filter) -> tuple[NDArray[np.float32], ...]:
    """Check a filter, and return what it has to have on the device.

    Raises:
        InvalidArgument: it is no filter, or has a parameter that it cannot have.
    """
    if isinstance(one, Separable):
        down = _odd("Separable: down", one.down, 1).reshape(-1, 1)
        return down, _odd("Separable: across", one.across, 1).reshape(1, -1)
    if isinstance(one, Correlate):
        return (_odd("Correlate: weights", one.weights, 2),)
    if isinstance(one, Bilateral):
        require_count("Bilateral: radius", one.radius, high=WIDEST // 2)
        require_number("Bilateral: sigma_place", one.sigma_place, low=LEAST_SIGMA)
        require_number("Bilateral: sigma_value", one.sigma_value, low=LEAST_SIGMA)
    elif isinstance(one, Equalise):
        require_count("Equalise: bins", one.bins, low=2, high=1 << 16)
        low = require_number("Equalise: low", one.low)
        require_number("Equalise: high", one.high, low=low, above=True)
    elif not isinstance(one, Sobel):
        raise InvalidArgument(
            "SetFilters: a filter is a Separable, Correlate, Sobel, Bilateral or Equalise, "
            f"not {one!r}"
        )
    return ()


def _odd(what: str, found: ArrayLike, axes: int) -> NDArray[np.float32]:
    """Return weights, if there is an odd number of them along each axis."""
    weights = np.asarray(found, np.float32)
    fits = weights.ndim == axes and all(n % 2 == 1 and n <= WIDEST for n in weights.shape)
    if not fits or not np.isfinite(weights).all():
        raise InvalidArgument(
            f"{what} must be finite, of {axes} axes with an odd number up to {WIDEST} along each, "
            f"not of shape {weights.shape}"
        )
    return weights
