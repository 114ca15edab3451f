"""Texts of anybody's, so that they fit into a frame."""

from accel_lab.compute.wire.codec import FRAME_LIMIT

TEXT_LIMIT = FRAME_LIMIT // 8
NAME_LIMIT = 1 << 10
"""How many bytes a text may take, and one that is a name or a value."""


def fitting(text: str, most: int = TEXT_LIMIT) -> str:
    """Return text that can be encoded, without its middle where it takes more than `most` bytes."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > most:
        cut, half = f" … {len(data) - most:,} bytes … ".encode(), most // 2
        data = data[:half] + cut + data[-half:]
    return data.decode("utf-8", "ignore")


def text_of(error: BaseException) -> str:
    """Return what an exception says; never raises, though a class of the user's may."""
    try:
        return str(error)
    except BaseException as raised:  # noqa: BLE001 - even an exit is no reason not to tell it
        return f"<its str raised {type(raised).__name__}>"


def repr_of(value: object) -> str:
    """Return the repr of a value, cut; never raises, though a class of the user's may."""
    try:
        return fitting(repr(value), NAME_LIMIT)
    except BaseException as raised:  # noqa: BLE001 - even an exit is no reason not to tell it
        return f"<a {type(value).__name__} whose repr raised {type(raised).__name__}>"
