"""The place of a part in a message to several devices."""

from typing import NamedTuple


class Place(NamedTuple):
    """What the wire and the journal say of a part.

    Attributes:
        group: the number of the message that it is a part of, in its system.
        rank: which part it is, from 0.
        size: how many parts there are.
        why: why it is aborted, if that was known before it was sent to a context.
        cancelled: whether somebody asked for that.
    """

    group: int
    rank: int
    size: int
    why: str = ""
    cancelled: bool = False
