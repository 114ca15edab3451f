"""Groups read from a store in batches, and the proof that none is missing or changed."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from accel_lab.compute.lineage.content_store import key_of
from accel_lab.errors import JournalDamaged
from accel_lab.journal.stores.group import Group

SCHEMA = 1
"""The version of what the stores keep; a store of a later one is refused."""
BATCH = 64


class Head(NamedTuple):
    """Which groups a store must have.

    Attributes:
        first: from this number on there is no gap; below are facts of sessions at most.
        last: the last number that was given.
    """

    first: int
    last: int


def proven(
    head: Callable[[], Head],
    batch: Callable[[int], Iterator[tuple[Group, int]]],
    after: int,
) -> Iterator[Group]:
    """Yield groups with numbers above `after` while each is what was written.

    Parameters:
        head: reads the head of the store as it is now.
        batch: reads some groups above a number in order, with their checksums; none at the end.

    Raises:
        JournalDamaged: a group is missing, was changed, or stands where it does not belong.
    """
    while True:
        known = head()
        number = after
        for group, checksum in batch(after):
            if group.checksum != checksum:
                text = f"group {group.number} of the journal is not what was written"
                raise JournalDamaged(text)
            if group.number <= number:
                text = f"group {group.number} of the journal follows group {number}"
                raise JournalDamaged(text)
            if group.number > number + 1:
                _no_gap(number, group.number, head)
            number = group.number
            yield group
        if number == after:
            _no_gap(number, known.last + 1, head)
            return
        after = number


def whole(key: str, pieces: Sequence[bytes]) -> bytes:
    """Join the pieces of a content.

    Raises:
        JournalDamaged: they are not what the key names.
    """
    require_content(key, pieces)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def require_content(key: str, pieces: Sequence[bytes]) -> None:
    """Refuse what is not the content of a key.

    Raises:
        JournalDamaged: it is not.
    """
    try:
        if key_of(*pieces) == key:
            return
    except TypeError:
        pass
    raise JournalDamaged(f"the content {key} of the journal is not what was written")


def _no_gap(number: int, above: int, head: Callable[[], Head]) -> None:
    """Refuse that groups between these are missing, unless they were trimmed meanwhile."""
    if number + 1 < above and head().first < above:
        text = f"groups {number + 1} to {above - 1} of the journal are missing"
        raise JournalDamaged(text)
