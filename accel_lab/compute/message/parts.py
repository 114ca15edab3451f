"""What a message is to name, in parts: a frame has an end, and there may be any number."""

from collections.abc import Iterable
from typing import TypeVar

NAMED_AT_ONCE = 4096
"""How many buffers one message names at most, where there may be any number."""
_Any = TypeVar("_Any")


def in_parts(many: Iterable[_Any]) -> list[list[_Any]]:
    """Cut what there is to name into what one message names."""
    every = list(many)
    return [every[i : i + NAMED_AT_ONCE] for i in range(0, len(every), NAMED_AT_ONCE)]
