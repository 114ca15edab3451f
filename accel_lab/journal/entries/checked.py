"""A group that anybody may have made, looked at as its readers will, before they do."""

from accel_lab.compute.lineage.recorded_message import step_of
from accel_lab.errors import JournalDamaged, JournalError
from accel_lab.journal.entries.entry import Entry, describe, entries_of
from accel_lab.journal.stores.group import Group

LATEST = 253_402_300_800.0
"""The year 10000, after which no clock tells the time."""
WRONG = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading raises where something is not of the type that it has in every journal."""


def check(group: Group) -> None:
    """Decode a group, and everything that can be asked of its entries.

    Raises:
        JournalDamaged: it is not what a journal has.
    """
    count = 0
    try:
        for text in (group.session, group.device, *group.keys):
            text.encode()
        if not 0 <= group.entries <= group.count:
            raise ValueError(f"{group.entries} entries in {group.count} parts")
        for entry in entries_of([group]):
            _ask(entry)
            count += 1
    except JournalDamaged:
        raise
    except JournalError:  # it is of a later version, as whoever reads it is told
        return
    except WRONG as error:
        raise JournalDamaged(f"group {group.number} holds no entries: {error!r}") from error
    if count != group.entries:
        text = f"group {group.number} has {count} entries, and says {group.entries}"
        raise JournalDamaged(text)


def _ask(entry: Entry) -> None:
    """Ask an entry for everything that it is made of."""
    if not 0 <= entry.at < LATEST:
        raise ValueError(f"{entry.at} is no time")
    describe(entry)
    entry.title.encode()
    ids = entry.fields["ids"] if entry.kind == "free" else entry.operands
    if not all(type(number) is int for number in (entry.seq, entry.result, *ids)):
        raise TypeError(f"{ids} are no numbers of buffers")
    if entry.kind == "message":
        step_of(entry.raw, b"")
        repr((entry.place, entry.makes, entry.why, entry.outcome, entry.content, entry.digests))
