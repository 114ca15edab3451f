"""What messages and simulations refuse: each text names the operand, what it is and should be."""

import math
from typing import Any

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument


def require_number(
    what: str, found: Any, *, low: float = -math.inf, high: float = math.inf, above: bool = False
) -> float:
    """Return a number within bounds as a float.

    Parameters:
        what: the operand, as "Step: dt".
        above: whether it must be above `low`, and not only at least that.

    Raises:
        InvalidArgument: it is none, not finite, or beyond a bound.
    """
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if (
        not is_number
        or not math.isfinite(found)
        or not low <= found <= high
        or (above and found == low)
    ):
        bounds = f"above {low:g}" if above else f"from {low:g}"
        expected = "a finite number" if low == -math.inf else f"a number {bounds}"
        if high < math.inf:
            expected += f" up to {high:g}"
        raise InvalidArgument(f"{what} must be {expected}, not {found!r}")
    return float(found)


def require_count(what: str, found: Any, *, low: int = 1, high: int = 1 << 30) -> int:
    """Return a whole number from `low` up to `high`.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
        raise InvalidArgument(f"{what} must be an int from {low} up to {high}, not {found!r}")
    return found


def require_numbers(
    what: str, found: Any, count: int, *, low: float = -math.inf, above: bool = False
) -> tuple[float, ...]:
    """Return so many numbers within bounds as floats.

    Raises:
        InvalidArgument: they are not so many, or one is none.
    """
    if not isinstance(found, tuple | list) or len(found) != count:
        raise InvalidArgument(f"{what} must be {count} numbers, not {found!r}")
    return tuple(require_number(what, one, low=low, above=above) for one in found)


def require_pixels(what: str, found: Any) -> tuple[int, int]:
    """Return the height and width of a picture.

    Raises:
        InvalidArgument: they are none.
    """
    if not isinstance(found, tuple | list) or len(found) != 2:  # noqa: PLR2004
        raise InvalidArgument(f"{what} must be height and width, not {found!r}")
    height, width = (require_count(what, one, high=1 << 14) for one in found)
    return height, width


def require_buffer(
    what: str, found: Any, device: Device, shape: tuple[int | str, ...], *dtypes: str
) -> AccelRef:
    """Return a buffer of a device with this shape, in which a word stands for any extent.

    Raises:
        InvalidArgument: it is another.
    """
    wanted = f"a buffer {' or '.join(dtypes)}[{', '.join(map(str, shape))}] of {device.name}"
    if not isinstance(found, AccelRef):
        raise InvalidArgument(f"{what} must be {wanted}, not {type(found).__name__}")
    fits = len(found.shape) == len(shape) and all(
        isinstance(want, str) or want == have
        for want, have in zip(shape, found.shape, strict=False)
    )
    if not fits or found.dtype not in dtypes:
        extents = ", ".join(map(str, found.shape))
        raise InvalidArgument(f"{what} must be {wanted}, not {found.dtype}[{extents}]")
    if not device.holds(found):
        raise InvalidArgument(f"{what} must be {wanted}; it is not on that device, or was lost")
    return found
