"""What a part of a journal needs from before it: the messages that made its operands."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from accel_lab.compute.lineage import Lineage, Restore
from accel_lab.journal.entry import Entry

Place: TypeAlias = tuple[str, str]
"""A session and a device."""

_encode = msgspec.msgpack.Encoder().encode
_LATER = frozenset(("failed", "content"))


class Prelude(NamedTuple):
    """What to run first.

    Attributes:
        entries: messages and checkpoints, in order.
        lost: why some buffers cannot be had, by session, device and number.
    """

    entries: list[Entry]
    lost: dict[Place, dict[int, str]]


def prelude(entries: Sequence[Entry], begin: int, part: Sequence[Entry]) -> Prelude:
    """Return what has to be run so that `part`, of entries from `begin` on, has its operands.

    Nothing else is run: only what made, or wrote, a buffer that the part names.
    """
    wanted: dict[Place, set[int]] = {}
    for entry in part:
        if entry.kind == "message":
            wanted.setdefault((entry.session, entry.device), set()).update(entry.operands)
    found = Prelude([], {})
    for place, ids in wanted.items():
        before = [e for e in entries[:begin] if (e.session, e.device) == place]
        known = ids & _made(before)
        if not known:
            continue
        lineage = Lineage()
        lineage.follow([_encode(e.raw) for e in before])
        later = [e for e in entries[begin:] if (e.session, e.device) == place and e.kind in _LATER]
        lineage.follow([_encode(e.raw) for e in later])
        without = {e.seq for e in before if e.failed}
        steps, lost = lineage.slice(known, without)
        by_seq = {e.seq: e for e in before if e.kind == "message"}
        points = {(e.fields["id"], e.seq): e for e in before if e.kind == "checkpoint"}
        for step in steps:
            if isinstance(step, Restore):
                found.entries.append(points[step.checkpoint.id, step.checkpoint.seq])
            else:
                found.entries.append(by_seq[step.seq])
        if lost:
            found.lost[place] = lost
    found.entries.sort(key=_order)
    return found


def _order(entry: Entry) -> tuple[str, int, bool]:
    """Sort by request, as the lineage does; a checkpoint comes after the request it is of."""
    return entry.session, entry.seq, entry.kind == "checkpoint"


def _made(entries: Sequence[Entry]) -> set[int]:
    made: set[int] = set()
    for entry in entries:
        if entry.kind == "message" and entry.result:
            made.add(abs(entry.result))
        elif entry.kind == "arrays":
            made.update(entry.fields["ids"])
    return made
