"""Buffers whose arrays only the names of a cell hold while it runs.

What the cell deletes or binds anew is free at once then, as in plain Python, and need not wait for
the notebook to hear of it. All of it happens on the dispatcher's thread.
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from accel_lab.compute.execution.buffer_table import NOTHING, Buffer, BufferTable


class LentBuffers:
    """Which operands of what runs have given up their arrays."""

    def __init__(self, operands: Sequence[Any], table: BufferTable) -> None:
        self._operands = operands
        self._table = table
        self._by_array: dict[int, Buffer] = {}
        self._lent: list[tuple[Buffer, weakref.ref[Any]]] = []

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have `lend` and `take_back` mean these meanwhile."""
        token = _entered.set(self)
        try:
            yield
        finally:
            _entered.reset(token)

    def lend(self, array: Any) -> None:
        """Hold this array no more, if it is an operand's."""
        if not self._by_array:
            self._by_array = {id(one.array): one for one in self._operands}
        buffer = self._by_array.get(id(array))
        if buffer is not None and buffer.array is array:
            watched = weakref.ref(array)
            self._lent.append((buffer, watched))
            buffer.lent = watched  # for who looks at what memory holds
            buffer.array = None

    def take_back(self) -> None:
        """Hold what is left of the arrays again; the buffers of the others have none."""
        while self._lent:  # an interrupt may come at any time, and this is called again then
            buffer, watched = self._lent[-1]
            buffer.array = watched()
            buffer.lent = NOTHING
            if buffer.array is None:
                self._table.leave(buffer)
            self._lent.pop()


_entered: ContextVar[LentBuffers | None] = ContextVar("entered", default=None)


def lend(array: Any) -> None:
    """Have the operands of what runs now hold this array no more, until `take_back`."""
    buffers = _entered.get()
    if buffers is not None:
        buffers.lend(array)


def take_back() -> None:
    """Have the operands of what runs now hold what is left of what they have lent."""
    buffers = _entered.get()
    if buffers is not None:
        buffers.take_back()
