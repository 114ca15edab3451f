"""Entries of a journal one after the other, each when it is known what became of it."""

from collections import deque
from collections.abc import Iterable, Iterator

from accel_lab.errors import JournalDamaged
from accel_lab.journal.entries.entry import Entry

AFTERMATH = 20_000
"""How many entries behind a message may tell what became of it: more than can be in flight."""
BEHIND = 2_000
"""What became of an entry is known until so many more were told."""


def settled(entries: Iterable[Entry], *, forgets: bool) -> Iterator[Entry]:
    """Yield entries, each when so many more have been read as may tell what became of it.

    Parameters:
        forgets: let go behind what became of them, for nobody else holds these entries.

    Raises:
        JournalDamaged: after everything before the damage was yielded.
    """
    damage: JournalDamaged | None = None
    ahead: deque[Entry] = deque()
    behind: deque[Entry] = deque()
    source = iter(entries)
    while True:
        try:
            ahead.append(next(source))
        except StopIteration:
            break
        except JournalDamaged as error:
            damage = error
            break
        if len(ahead) > AFTERMATH:
            yield ahead[0]
            behind.append(ahead.popleft())
        if len(behind) > BEHIND:
            old = behind.popleft()
            if forgets:
                old.aftermath.forget(old.seq)
    while ahead:
        yield ahead.popleft()
    if damage is not None:
        raise damage
