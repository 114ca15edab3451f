"""The place of a part in a message to several devices."""

from typing import NamedTuple


class Place(NamedTuple):
    """What the wire and the journal say of a part.

    On the wire it is followed by why it was aborted and whether somebody has asked for that, if
    that was known before it was sent to a context.

    Attributes:
        group: the number of the message that it is a part of, in its system.
        rank: which part it is, from 0.
        size: how many parts there are.
    """

    group: int
    rank: int
    size: int
