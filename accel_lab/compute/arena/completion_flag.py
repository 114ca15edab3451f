"""A word of the arena that a card writes when it has done something, for a thread that looks at it.

An answer goes through the context's process and over the wire, and takes some 10 µs longer.
"""

from collections import deque
from collections.abc import Hashable

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.block import Block
from accel_lab.compute.message.builtin import Sign

_VALUES = 4
WORD = 4


class Flag:
    """One word, for one request at a time until `settle`.

    Each request has another value: what one that was given up has written late, in the order of
    its stream, is not taken for the next one's.
    """

    __slots__ = ("_block", "_idle", "_value", "_words")

    def __init__(self, block: Block, idle: "deque[Flag]") -> None:
        self._block = block
        self._words = block.view.data.cast("I")
        self._words[0], self._value = 0, _VALUES
        self._idle = idle

    def sign(self) -> Sign:
        """Return what the next request is to have written."""
        self._value = value = self._value % _VALUES + 1
        return Sign(self._block.segment_id, self._block.offset, value)

    @property
    def is_set(self) -> bool:
        """Whether the card has written that; any thread."""
        return self._words[0] == self._value

    def settle(self, lost: Hashable | None) -> None:
        """Take it back: the request is answered, or its context lost; any thread."""
        if lost is None:
            self._idle.append(self)
        else:
            self._block.release(after=lost)


class Flags:
    """Those of one device."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._idle: deque[Flag] = deque()

    def take(self) -> Flag:
        """Return one that nobody uses; blocks for room in the arena."""
        try:
            return self._idle.popleft()
        except IndexError:
            return Flag(self._arena.allocate(WORD), self._idle)
