"""Arrays that the user must not write to because somebody is reading them in place."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from accel_lab.compute.arena.arena import Arena


class ReadOnlyHold:
    """An upload in progress: the array is read-only and its block is not reused.

    Made by `Arena.hold`. It keeps the array alive until `release`.
    """

    __slots__ = ("_arena", "_array", "serial")

    def __init__(self, arena: "Arena", array: npt.NDArray[Any], serial: int) -> None:
        self._arena = arena
        self._array: npt.NDArray[Any] | None = array
        self.serial = serial

    def release(self) -> None:
        """End the hold; the last one of an array makes it writable if it was.

        Any thread; never waits for memory, but takes the arena's lock, so never from a
        finalizer. The second call does nothing.
        """
        array, self._array = self._array, None
        if array is not None:
            self._arena.end_hold(array, self.serial)


class ReadOnly:
    """Which array objects are read-only for now, how often, and what they were before.

    Not thread-safe. It keeps the arrays alive, so that an `id` cannot be reused.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[npt.NDArray[Any], int, bool]] = {}

    def add(self, array: npt.NDArray[Any]) -> None:
        """Forbid writing through this very array object; its other views are not touched."""
        _, count, writable = self._entries.get(id(array), (array, 0, array.flags.writeable))
        self._entries[id(array)] = (array, count + 1, writable)
        array.flags.writeable = False

    def remove(self, array: npt.NDArray[Any]) -> None:
        """Undo one `add`; the last one restores the flag."""
        _, count, writable = self._entries.pop(id(array))
        if count > 1:
            self._entries[id(array)] = (array, count - 1, writable)
        elif writable:
            # Refused when the user made the base read-only meanwhile: then it stays so.
            with suppress(ValueError):
                array.flags.writeable = True
