"""The typed command that every actor receives."""

from typing import Generic, TypeVar

import msgspec

R = TypeVar("R")


class Message(msgspec.Struct, Generic[R], frozen=True, array_like=True, eq=False):
    """A frozen, typed command; `R` is what its reply holds.

    Fields are only ever appended, because the same bytes travel to the context and to the
    journal. A message that crosses a process carries an integer `tag` of its own.
    """
