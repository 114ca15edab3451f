"""What one message has to do with others, read from a journal: for arrows in a timeline."""

from collections.abc import Iterable
from typing import NamedTuple

from accel_lab.journal.entries.entry import Entry

READ = 20_000
"""So many of a journal's newest entries are read for one question."""
MOST = 32
"""How many messages of a kind are told."""
Message = tuple[str, int]
"""A device and the number of a request there."""


class Relations(NamedTuple):
    """The messages around one.

    Attributes:
        makers: what made its operands, or wrote to them last.
        users: what read its results, the first first.
        group: the other parts of a message to several devices.
        cell: the notebook cell that sent it; None where that is not known.
        why: why nothing is known; empty where it is.
    """

    makers: tuple[Message, ...] = ()
    users: tuple[Message, ...] = ()
    group: tuple[Message, ...] = ()
    cell: int | None = None
    why: str = ""


def relations_of(entries: Iterable[Entry], device: str, seq: int) -> Relations:
    """Return what entries, the oldest first, tell of a message.

    A number names a buffer of one device; what was made on another is not in its operands.
    """
    one: Entry | None = None
    makers: dict[int, int] = {}  # of each buffer of the device, which message made it last
    found: dict[Message, None] = {}
    users: dict[Message, None] = {}
    made: set[int] = set()
    parts: dict[tuple[str, int], dict[Message, None]] = {}
    for entry in entries:
        if entry.kind != "message":
            continue
        if entry.place is not None:
            group = parts.setdefault((entry.session, entry.place.group), {})
            group[entry.device, entry.seq] = None
        if entry.device != device:
            continue
        if entry.seq == seq:
            one, users, made = entry, {}, set(entry.makes)
            found = {(device, makers[id_]): None for id_ in entry.operands if id_ in makers}
        elif one is not None and made.intersection(entry.operands):
            users[device, entry.seq] = None
        if one is not None and entry is not one:
            made.difference_update(entry.makes)
        makers.update(dict.fromkeys(entry.makes, entry.seq))
    if one is None:
        return Relations(why="its message is not in the journal any more, or not yet")
    group = {} if one.place is None else parts[one.session, one.place.group]
    return Relations(
        makers=tuple(found)[:MOST],
        users=tuple(users)[:MOST],
        group=tuple(other for other in group if other != (device, seq))[:MOST],
        cell=one.cell,
    )
