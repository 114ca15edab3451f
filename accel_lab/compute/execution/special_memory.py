"""Memory that is not the pool's: a library makes it, and makes it again after a loss.

It stays where it is when memory is short, and is let go of behind the last use of it.
"""

from typing import TYPE_CHECKING, Any, Protocol

from accel_lab.compute.execution.stream import Storage, Stream

if TYPE_CHECKING:
    from accel_lab.compute.execution.held_objects import HeldObjects


class SpecialMemory(Protocol):
    """What a library has made; the memory is free when nothing has this any more, nor its arrays.

    Attributes:
        used_bytes: how much of it, from its begin, is in use.
    """

    used_bytes: int

    @property
    def nbytes(self) -> int:
        """How much it takes on the device."""

    @property
    def kind(self) -> str:
        """What makes such memory again: the library's name, a space, and what that understands."""

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""


class SpecialStorage(Storage):
    """The storage of such memory.

    Parameters:
        held: keeps the memory until the streams are behind its last use.
    """

    __slots__ = ("_held", "memory")

    def __init__(
        self, home: Stream, memory: SpecialMemory, label: str, held: "HeldObjects"
    ) -> None:
        super().__init__(home, memory.nbytes, label)
        self.memory = memory
        self._held = held

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What makes such memory again."""
        return self.memory.kind

    @property
    def whole(self) -> Any:
        """All of it that is in use, as bytes."""
        return self.memory.array((self.memory.used_bytes,), "uint8")

    def release(self) -> None:
        """Let go of the memory after every use of it."""
        super().release()
        self._held.add(0, self.home, self.memory)
