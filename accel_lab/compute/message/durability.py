"""What a fault would do to a buffer."""

from typing import Self


class Durability(str):  # noqa: SLOT000 - a str has no slots beside it that a reason could take
    """What a fault would do to a buffer: `replayable`, `checkpointed` or `lost on fault`.

    Attributes:
        why: the reason, for people.
    """

    why: str

    def __new__(cls, word: str, why: str) -> Self:
        """Make one of a word and its reason."""
        made = super().__new__(cls, word)
        made.why = why
        return made
