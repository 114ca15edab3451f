"""The argument of a kernel that takes one structure: memory that is filled before each launch."""

from struct import Struct
from typing import Any

import numpy as np

_WORD = 8


class Packed:
    """A structure: what `head` packs, and behind it integers of 32 bits.

    The driver copies it before a launch returns, so the next launch may fill it again.

    Parameters:
        head: of C's own alignment and order.
        numbers: how many integers follow.

    Attributes:
        nbytes: of the structure.
        at: the address of an array that has the structure's address, as launches want it.
        numbers: the integers, NumPy's array.
    """

    def __init__(self, head: Struct, numbers: int = 0) -> None:
        self.nbytes = -(-(head.size + 4 * numbers) // _WORD) * _WORD
        words: Any = np.zeros(1 + self.nbytes // _WORD, np.uint64)
        self.at: int = words.ctypes.data
        words[0] = self.at + _WORD
        self._head, self._memory = head, memoryview(words).cast("B")
        first = _WORD + head.size
        self.numbers: Any = words.view(np.uint8)[first : first + 4 * numbers].view(np.int32)

    def fill(self, *values: Any) -> None:
        """Pack the head."""
        self._head.pack_into(self._memory, _WORD, *values)
