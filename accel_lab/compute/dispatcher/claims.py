"""What messages that are not done read and write, so that others keep their order behind them.

A result and what a message writes are claimed exclusively, what it reads is shared. Memory is
claimed by its storage, which views share, and by the buffer's id, which stands for it until there
is memory. A function that is not pure claims all that it names, and what functions share without
naming it.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.message.builtin import OF_TABLE, Run
from accel_lab.compute.message.operation import Operation, operands_of
from accel_lab.compute.message.results import ids_of

_FUNCTIONS = "functions"
"""Stands for all that functions may share."""
_PARTS = "parts"
"""Stands for the order of the messages of which other devices have a part, too."""

_ALL = "all"
"""Stands for all that is sent behind a fence."""


class Claim(NamedTuple):
    """What one message has while it runs or waits: buffers by id, and their storages."""

    shared: set[Any]
    exclusive: set[Any]


class Claims:
    """What is claimed by messages that run beside the dispatcher, or wait behind those.

    Parameters:
        parts_last: whether a part of a message to several devices waits for all of those. It has
            its stream wait for the other parts, and where libraries share streams, what was sent
            before it must not get behind it.
    """

    def __init__(self, *, parts_last: bool = False) -> None:
        self._parts_last = parts_last
        self._exclusive: dict[Any, bool] = {}  # by what is claimed; not in it where nothing is

    def __contains__(self, memory: int | Storage) -> bool:
        return memory in self._exclusive

    def add(self, claim: Claim) -> None:
        """Enter what a message has."""
        for one in claim.shared:
            self._exclusive.setdefault(one, False)
        for one in claim.exclusive:
            self._exclusive[one] = True

    def clear(self) -> None:
        """Forget them all."""
        self._exclusive.clear()

    def forbid(self, entry: Any) -> bool:
        """Whether an entry has to wait: it names what is claimed, and one of the two writes."""
        claimed = self._exclusive
        message = entry.message
        around = looks_around(message)
        part_waits = entry.place is not None and (
            _PARTS in claimed or (self._parts_last and bool(claimed))
        )
        if _ALL in claimed or part_waits:
            return True
        functions = around or _FUNCTIONS in claimed
        if functions and self._meets_functions(entry, around=around):
            return True
        if entry.result and any(id_ in claimed for id_ in ids_of(message, entry.result)):
            return True
        find, shared = claimed.get, False
        for buffer in operands_of(type(message))(message):
            by_id, by_storage = find(buffer.id), find(buffer.storage)
            if by_id or by_storage:
                return True
            shared = shared or by_id is False or by_storage is False
        if not shared:
            return False
        return around or any(
            one.id in claimed or one.storage in claimed for one in _written(message)
        )

    def _meets_functions(self, entry: Any, *, around: bool) -> bool:
        """Whether a function and another message may see the same memory, named by one alone."""
        claimed = self._exclusive
        if around:
            return _FUNCTIONS in claimed or any(
                isinstance(one, Storage) and one.seen for one in claimed
            )
        operands = operands_of(type(entry.message))(entry.message)
        return any(one.storage is not None and one.storage.seen for one in operands)


def claim_of(entry: Any, made: Iterable[Storage] = ()) -> Claim:
    """Return what an entry has until it is done.

    Parameters:
        made: what it has made by now.
    """
    message = entry.message
    named = operands_of(type(message))(message)
    # What may become a view of an operand lets others write to that, by a name not known to be one.
    views = named if type(message) is Run else _aliased(message)
    results = ids_of(message, entry.result)
    exclusive = {*results, *made, *_memory(_written(message)), *_memory(views)}
    if looks_around(message):
        exclusive.add(_FUNCTIONS)
    return Claim(_memory(named) - exclusive, exclusive)


def waiting_claim_of(entry: Any) -> Claim:
    """Return what an entry has while it waits to begin.

    The parts of messages to several devices wait for each other, so they begin on every device in
    the order in which they were sent, also where their buffers have nothing in common.
    """
    claim = claim_of(entry)
    if entry.place is not None:
        claim.exclusive.add(_PARTS)
    if is_fence(entry.message):
        claim.exclusive.add(_ALL)
    return claim


def is_fence(message: Any) -> bool:
    """Whether all that was sent before a message is enqueued before it, and all else behind it."""
    return isinstance(message, Operation) and message.fence


def looks_around(message: Any) -> bool:
    """Whether it is a function that may use what it does not name."""
    return type(message) is Run and not message.pure


def _written(message: Any) -> Iterable[Any]:
    """Return the buffers that a message writes, or changes in the table."""
    if type(message) in OF_TABLE or looks_around(message):
        return operands_of(type(message))(message)
    return message.overwrites() if isinstance(message, Operation) else ()


def _aliased(message: Any) -> Iterable[Any]:
    """Return the buffer whose memory the result will share."""
    buffer = getattr(message, message.aliased, None) if isinstance(message, Operation) else None
    return () if buffer is None else (buffer,)


def _memory(buffers: Iterable[Any]) -> set[Any]:
    """Return what two messages share that name the same memory."""
    found: set[Any] = set()
    for buffer in buffers:
        found.add(buffer.id)
        if buffer.storage is not None:
            found.add(buffer.storage)
    return found
