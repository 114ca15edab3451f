"""Sizes as people read them."""

import math
from collections.abc import Callable

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_NEXT_UNIT = 1023.5  # what would be written as 1024
_WHOLE = 9.95  # what would be written as 10.0


def size(size_bytes: int) -> str:
    """Write bytes with a unit: 0 B, 3.2 MiB, 139 GiB."""
    unit = _unit_of(size_bytes)
    return f"{_scaled(size_bytes, unit)} {_UNITS[unit]}"


def compared(*sizes_bytes: int) -> Callable[[int], str]:
    """Return what writes sizes: `size`, or in full where it would not tell one from another."""
    alike = len(set(map(size, sizes_bytes))) < len(set(sizes_bytes))
    return (lambda size_bytes: f"{size_bytes:,} B") if alike else size


def memory(used_bytes: int | None, total_bytes: int | None) -> str:
    """Write memory in use of a total, in its unit when that says enough: 1.2 / 139 GiB."""
    if used_bytes is None:
        return ""
    if not total_bytes:
        return size(used_bytes)
    unit = _unit_of(total_bytes)
    if used_bytes > 0 and _scaled(used_bytes, unit) == "0":
        return f"{size(used_bytes)} / {size(total_bytes)}"
    return f"{_scaled(used_bytes, unit)} / {size(total_bytes)}"


def _unit_of(size_bytes: int) -> int:
    unit, rest = 0, float(size_bytes)
    while rest >= _NEXT_UNIT and unit < len(_UNITS) - 1:
        unit, rest = unit + 1, rest / 1024
    return unit


def _scaled(size_bytes: int, unit: int) -> str:
    """One digit after the point below ten, none above; halves go up, as in the browser."""
    if unit == 0:
        return str(size_bytes)
    value = size_bytes / 1024**unit
    if value >= _WHOLE:
        return str(math.floor(value + 0.5))
    tenth = math.floor(value * 10 + 0.5)
    return str(tenth // 10) if tenth % 10 == 0 else f"{tenth / 10:.1f}"
