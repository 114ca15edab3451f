"""Managed and growing memory as a context has it: what a backend made, and what is known of it."""

import json
import math
from typing import Any, Protocol

from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.memory.messages import Hints

MANAGED, GROWING, SHARED = "memory managed", "memory growing", "memory shared"


class Block(Protocol):
    """Memory that a backend has made; its arrays keep it."""

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""


class GrowingBlock(Block, Protocol):
    """Addresses that are reserved, of which the first have memory."""

    mapped_bytes: int

    def missing_bytes(self, nbytes: int) -> int:
        """Return how much more memory it takes for the first `nbytes` to have some."""

    def grow(self, nbytes: int) -> None:
        """Have the first `nbytes` have memory.

        Raises:
            MemoryError: the device gives none; nothing changed.
        """


class ManagedMemory:
    """Managed memory, and what was asked of it."""

    def __init__(self, block: Block, nbytes: int, hints: Hints) -> None:
        self.block = block
        self.nbytes = self.used_bytes = nbytes
        self.hints = hints

    @property
    def kind(self) -> str:
        """What makes such memory again."""
        return f"{MANAGED} {json.dumps(self.hints)}"

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""
        return self.block.array(shape, dtype)


class GrowingMemory:
    """Memory that grows at its end."""

    def __init__(self, block: GrowingBlock, reserved_bytes: int) -> None:
        self.block = block
        self.reserved_bytes = reserved_bytes
        self.used_bytes = 0

    @property
    def nbytes(self) -> int:
        """How much it takes on the device, in whole pages."""
        return self.block.mapped_bytes

    @property
    def kind(self) -> str:
        """What makes such memory again."""
        return f"{GROWING} {self.reserved_bytes}"

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""
        return self.block.array(shape, dtype)


def hints_of(kind: str) -> Hints:
    """Return what was asked of managed memory of this kind."""
    given = Hints(*json.loads(kind.removeprefix(MANAGED)))
    return given._replace(accessed_by=tuple(given.accessed_by))


def reserved_of(kind: str) -> int:
    """Return how far growing memory of this kind may grow."""
    return int(kind.removeprefix(GROWING))


def bytes_of(spec: Spec) -> int:
    """Return how much an array of such a shape and dtype has."""
    return math.prod(spec.shape) * itemsize(spec.dtype)
