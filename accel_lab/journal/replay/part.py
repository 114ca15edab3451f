"""The part of a journal that is to be replayed."""

from collections.abc import Iterable, Sequence
from operator import index
from typing import SupportsIndex, TypeAlias

from accel_lab.compute.graph.messages import RecordGraph
from accel_lab.compute.message.builtin import Run
from accel_lab.errors import JournalDamaged, JournalError
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.replay.prelude import Place
from accel_lab.journal.replay.repeat import Recorded
from accel_lab.libraries.jit.messages import Compile

CODE = frozenset(kind.__name__ for kind in (Run, Compile, RecordGraph))

Where: TypeAlias = SupportsIndex | Entry | None


def read(journal: Recorded) -> tuple[list[Entry], str]:
    """Return the entries of a journal up to its damage, and what that is, if there is any."""
    entries: list[Entry] = []
    try:
        entries.extend(journal)
    except JournalDamaged as error:
        return entries, str(error)
    return entries, ""


def position(entries: Sequence[Entry], where: Where, default: int) -> int:
    """Return the position among the entries.

    Raises:
        JournalError: there is no such entry.
    """
    if where is None:
        return default
    if not isinstance(where, Entry):
        number, count = index(where), len(entries)
        if not -count <= number <= count:  # behind the last, nothing is left to run
            raise JournalError(f"there is no entry {number} in a journal of {count}")
        return number + count if number < 0 else number
    for at, entry in enumerate(entries):
        if entry.number == where.number:
            return at
    raise JournalError(f"entry {where.number} is not in the part of the journal that was given")


def refuse_code(entries: Iterable[Entry], journal: Recorded) -> None:
    """Raise JournalError if there is code among these that another process recorded."""
    own = journal.own_sessions
    code = [entry for entry in entries if entry.name in CODE and entry.session not in own]
    if code:
        raise JournalError(
            f"the journal has code of another process, in {len(code)} messages from entry "
            f"{code[0].number} ({code[0].name}) on; if you trust it, give allow_code=True"
        )


def mentions(entries: Iterable[Entry]) -> dict[Place, dict[int, int]]:
    """Return the last entry that names each buffer; what was made again after a loss is named."""
    last: dict[Place, dict[int, int]] = {}
    for entry in entries:
        ids = entry.fields["buffers"] if entry.kind == "rebuilt" else entry.operands
        if ids:
            named = last.setdefault((entry.session, entry.device), {})
            named.update(dict.fromkeys(ids, entry.number))
    return last
