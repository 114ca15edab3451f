"""A group as a row of a table, and back."""

from collections.abc import Sequence
from typing import Any

import msgspec

from accel_lab.errors import JournalDamaged
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.store import Weighed

_COLUMNS = tuple(name for name in Group.__struct_fields__ if name != "plain")


def row_of(group: Group) -> dict[str, Any]:
    """Return a group's columns by name, in the order of its fields, and its checksum at last."""
    row = {name: getattr(group, name) for name in _COLUMNS}
    return row | {"keys": " ".join(group.keys), "checksum": group.checksum}


def of_row(row: Sequence[Any], name: str) -> tuple[Group, int]:
    """Return the group of a row, and its checksum; `name` is the store's, for the error.

    Raises:
        JournalDamaged: the row was not written so.
    """
    try:
        fields = dict(zip(_COLUMNS, row, strict=False))
        fields |= {"data": bytes(fields["data"]), "keys": fields["keys"].split()}
        return msgspec.convert(fields, Group), int(row[-1])
    except (AttributeError, TypeError, ValueError) as error:
        text = f"group {row[0]} of {name} is not what was written: {error}"
        raise JournalDamaged(text) from error


def weighed_of_row(row: Sequence[Any]) -> Weighed:
    """Return what deciding takes of number, session, device, entries, length and keys."""
    number, session, device, entries, nbytes, keys = row
    return Weighed(number, session, device, entries, nbytes, tuple(keys.split()))
