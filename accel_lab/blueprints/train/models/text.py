"""A text as numbers of characters, in pieces of one length.

`sonnets` are the first ten of William Shakespeare's Sonnets, printed in 1609, in modern spelling;
the text is in the public domain.
"""

from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from accel_lab.errors import InvalidArgument

Tokens = npt.NDArray[np.int64]


class Text:
    """Batches of pieces of a text; a step's depend on nothing but its number.

    `Text(sonnets(), length=32, size=16)` returns for a step the tokens (size, length), and as
    labels the token that follows each. Pieces begin anywhere.

    Attributes:
        alphabet: the characters of the text, in order; a token is a character's place there.
    """

    def __init__(self, text: str, *, length: int, size: int, seed: int = 0) -> None:
        if type(length) is not int or not 1 <= length < len(text):
            found = f"length is {length!r}, and the text has {len(text)} characters"
            raise InvalidArgument(f"Text: {found}; it is an integer from 1 to below that")
        if type(size) is not int or size < 1:
            raise InvalidArgument(f"Text: size is {size!r}; it is an integer from 1")
        self.alphabet = "".join(sorted(set(text)))
        self.length, self.size = length, size
        self._seed = seed
        self._tokens = self.encode(text)

    def encode(self, text: str) -> Tokens:
        """Return the tokens of characters.

        Raises:
            InvalidArgument: one is not in the alphabet.
        """
        places = {one: at for at, one in enumerate(self.alphabet)}
        strange = sorted(set(text) - set(places))
        if strange:
            raise InvalidArgument(f"Text: {strange} are not among {self.alphabet!r}")
        return np.array([places[one] for one in text], np.int64)

    def decode(self, tokens: npt.ArrayLike) -> str:
        """Return the characters of tokens."""
        return "".join([self.alphabet[at] for at in np.asarray(tokens).reshape(-1)])

    def __call__(self, step: int) -> tuple[Tokens, Tokens]:
        """Return the tokens of a step, and those that follow them."""
        random = np.random.default_rng([self._seed, step])
        starts = random.integers(0, len(self._tokens) - self.length, self.size)
        at = starts[:, None] + np.arange(self.length)
        return self._tokens[at], self._tokens[at + 1]


@cache
def sonnets() -> str:
    """Return ten sonnets of Shakespeare, some 6 KB, of which a small model learns something."""
    return files(__package__).joinpath("sonnets.txt").read_text("utf-8")
