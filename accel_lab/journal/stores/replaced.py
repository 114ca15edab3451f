"""Another journal in the place of one that is read, as in a server that has kept nothing."""

from collections.abc import Callable

from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.store import Store


def is_replaced(store: Store, last: int, was_read: Callable[[Group], bool]) -> bool:
    """Whether a store, which was read up to a group, holds another journal now; may block for it.

    Parameters:
        last: the number of that group, 0 for none.
        was_read: says so of a group with a number up to that.

    Raises:
        JournalError: the store cannot be read.
    """
    if not last or isinstance(store, MemoryStore):
        return False
    there = next(store.groups(last - 1), None)
    if there is None:  # perhaps it will be there
        there = next((group for group in store.groups() if group.device), None)
    return there is not None and there.number <= last and not was_read(there)
