"""Windows that slide over the extents of an array, as those of convolutions and of pooling."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from accel_lab.libraries.dnn.message import refusal

MOST_EXTENTS = 3


class Windows(NamedTuple):
    """A window for each of the places where it fits; each field has an integer for each extent.

    Attributes:
        window: how many elements it has.
        padding: how many elements are put before the first and behind the last.
        stride: how far the next place is.
        dilation: how far the next element of a window is.
    """

    window: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    def places(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Return at how many places the window fits; none or fewer where it is too large."""
        several = zip(extents, *self, strict=True)
        return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, p, s, d in several])

    def covered(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Return the least extents that have so many places: those of a transposed convolution."""
        several = zip(places, *self, strict=True)
        return tuple([(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, k, p, s, d in several])

    def padded(self, xp: Any, x: Any, value: float = 0.0) -> Any:
        """Return an array of which the last axes are padded."""
        if not any(self.padding):
            return x
        before = x.ndim - len(self.padding)
        around = xp.full(self.padded_shape(x.shape), value, x.dtype)
        inside = [slice(p, p + n) for p, n in zip(self.padding, x.shape[before:], strict=True)]
        around[(..., *inside)] = x
        return around

    def padded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape of which the last axes are padded."""
        before = len(shape) - len(self.padding)
        several = zip(shape[before:], self.padding, strict=True)
        return (*shape[:before], *(n + 2 * p for n, p in several))

    def inside(self, padded: Any) -> Any:
        """Return the view of a padded array that is what was padded."""
        before = padded.ndim - len(self.padding)
        several = zip(padded.shape[before:], self.padding, strict=True)
        return padded[(..., *[slice(p, n - p) for n, p in several])]

    def slices(self, places: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
        """Return each element of the window, and where it lies in a padded array at all places."""
        for at in product(*map(range, self.window)):
            several = zip(at, places, self.stride, self.dilation, strict=True)
            yield (
                at,
                (..., *[slice(i * d, i * d + (n - 1) * s + 1, s) for i, n, s, d in several]),
            )


def windows(message: Any, window: Any) -> Windows:
    """Return the windows of a message, whose options may have one integer for all extents.

    Raises:
        InvalidArgument: an option has another number of integers, or one that is too small.
    """
    several: tuple[int, ...] = window
    count = len(several)
    if not 1 <= count <= MOST_EXTENTS:
        text = f"there are {count} extents behind batch and channels; 1 to {MOST_EXTENTS} fit"
        raise refusal(message, text)
    if any(type(n) is not int or n < 1 for n in several):
        raise refusal(message, f"the window is {several}; each of its extents is at least 1")
    options = {"padding": 0, "stride": 1, "dilation": 1}
    found = [_each(message, name, count, least) for name, least in options.items()]
    return Windows(several, *found)


def _each(message: Any, name: str, count: int, least: int) -> tuple[int, ...]:
    said = getattr(message, name, (1,))  # what has no dilation has none
    if name == "stride" and not said:
        said = message.window  # pooling: places do not overlap
    several = said * count if isinstance(said, tuple) and len(said) == 1 else said
    fits = isinstance(several, tuple) and len(several) == count
    if not fits or any(type(n) is not int or n < least for n in several):
        text = f"{name} is {said!r}; it is {count} integers from {least}, or one for all"
        raise refusal(message, text)
    return several
