"""What some messages need from before them: those that made, or changed, their operands."""

from collections.abc import Collection, Iterable
from typing import TypeAlias

from accel_lab.compute.lineage.recorded_message import Step, step_of
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.replay.buffers import Buffers

Place: TypeAlias = tuple[str, str]
"""A session and a device."""


def place_of(entry: Entry) -> Place:
    """Return the session and the device of an entry."""
    return entry.session, entry.device


def prelude(before: Iterable[Entry], part: Iterable[Entry]) -> list[Entry]:
    """Return the messages among `before` on which the messages of `part` depend, in order.

    Buffers that may share memory count as one. Checkpoints of what is needed are among them, for
    what cannot be made otherwise. Functions that failed are, too: they may have changed something.
    """
    wanted: dict[Place, set[int]] = {}
    for entry in part:
        if entry.kind == "message":
            wanted.setdefault(place_of(entry), set()).update(entry.operands)
    places: dict[Place, list[Entry]] = {place: [] for place in wanted}
    for entry in before:
        if entry.kind in ("message", "arrays", "checkpoint") and place_of(entry) in places:
            places[place_of(entry)].append(entry)
    found = [entry for place, ids in wanted.items() for entry in _needed(places[place], ids)]
    found.sort(key=lambda entry: entry.number)
    return found


def _needed(entries: list[Entry], wanted: Collection[int]) -> list[Entry]:
    """Walk back over one device's entries: what changes something needed is needed too."""
    buffers = Buffers()
    steps = _read(entries, buffers)
    ids = set(wanted)
    memory = {root for id_ in wanted for root in buffers.roots(id_)}
    answers: set[int] = set()
    found: list[Entry] = []
    for entry, step in reversed(steps):
        if step is None:
            needed = _names(entry, ids)
            if needed and entry.kind == "arrays":
                answers.add(entry.seq)
        else:
            changed = any(not memory.isdisjoint(buffers.roots(id_)) for id_ in step.writes)
            needed = not ids.isdisjoint(step.makes) or changed or step.seq in answers
            needed = needed and (not entry.failed or bool(step.opaque))
        if not needed:
            continue
        found.append(entry)
        if step is not None:
            ids.update(step.operands)
            memory.update(root for id_ in step.operands for root in buffers.roots(id_))
    return found


def _read(entries: list[Entry], buffers: Buffers) -> list[tuple[Entry, Step | None]]:
    """Return each entry with its step, if it is a message, and note which buffers share memory."""
    steps: dict[int, Step] = {}
    found: list[tuple[Entry, Step | None]] = []
    for entry in entries:
        step = None
        if entry.kind == "message":
            step = steps[entry.seq] = step_of(entry.raw, b"")
            for id_ in step.makes:
                buffers.join(id_, step.shares)
        elif entry.kind == "arrays" and entry.seq in steps:
            for id_ in entry.fields["ids"]:  # any of them may be a view of an operand
                buffers.join(id_, steps[entry.seq].operands)
        found.append((entry, step))
    return found


def _names(entry: Entry, ids: set[int]) -> bool:
    if entry.kind == "arrays":
        return not ids.isdisjoint(entry.fields["ids"])
    return entry.fields["id"] in ids
