"""Byte-level byte pair encoding, as GPT-2's, with each digit by itself.

Text is cut into pieces, the UTF-8 bytes of a piece are written as printable characters, and the
pair that was learned first is joined until no pair is left (Sennrich et al., Neural Machine
Translation of Rare Words with Subword Units, 2016).
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from accel_lab.errors import InvalidArgument

_PIECE = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
"""GPT-2's expression for text without digits, where what is alphanumeric is a letter."""


def _characters() -> dict[int, str]:
    """Map bytes to characters: those that can be seen to themselves, others to ones from 256."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    seen += range(ord("®"), ord("ÿ") + 1)
    hidden = (byte for byte in range(256) if byte not in seen)
    written = {byte: chr(byte) for byte in seen}
    written |= {byte: chr(256 + number) for number, byte in enumerate(hidden)}
    return {byte: written[byte] for byte in range(256)}


_CHARACTERS = _characters()
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


class Tokenizer:
    """Turns text into numbers of tokens, and back.

    Parameters:
        tokens: all of them; a token's place is its number.
        merges: pairs that are joined, as "a b", the first ones first.
        special: tokens that are no text, as the mark between turns.
    """

    def __init__(
        self, tokens: Sequence[str], merges: Sequence[str], special: Iterable[str] = ()
    ) -> None:
        self.tokens = list(tokens)
        self._numbers = {token: number for number, token in enumerate(tokens)}
        self._ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(merges)}
        self._special = set(special)
        self.rules = self.tokens, self._ranks, self._special
        longest = sorted(self._special, key=len, reverse=True)
        self._marks = re.compile("|".join(f"({re.escape(one)})" for one in longest) or "(?!)")

    @classmethod
    def of_bytes(cls) -> Self:
        """Return one whose tokens are the 256 bytes."""
        return cls(list(_CHARACTERS.values()), ())

    def reads(self, other: "Tokenizer") -> bool:
        """Whether another one makes the same tokens of every text."""
        return self is other or self.rules == other.rules

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the numbers of a text's tokens.

        Parameters:
            special: whether `<|im_end|>` and the like in the text are tokens; what a user has
                written should not have any.

        Raises:
            InvalidArgument: there is no token for a part of it.
        """
        if not special:
            return list(itertools.chain.from_iterable(map(self._piece, pieces(text))))
        found, last = [], 0
        for mark in self._marks.finditer(text):
            found += [*self.encode(text[last : mark.start()]), self._numbers[mark.group()]]
            last = mark.end()
        return found + self.encode(text[last:])

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of tokens; a character cut in its middle is "\ufffd"."""
        content = bytearray()
        for number in numbers:
            token = self.tokens[number]
            if token in self._special:
                content += token.encode()
            else:
                content += bytes(_BYTES[character] for character in token)
        return content.decode(errors="replace")

    def _piece(self, piece: str) -> list[int]:
        parts = joined([_CHARACTERS[byte] for byte in piece.encode()], self._ranks)
        for part in parts:
            if part not in self._numbers:
                raise InvalidArgument(f"there is no token {part!r}, for {piece!r}")
        return [self._numbers[part] for part in parts]


def pieces(text: str) -> Iterator[str]:
    """Cut a text into what is encoded by itself: digits, words with the space before, and so on."""
    for is_number, run in itertools.groupby(text, lambda one: unicodedata.category(one)[0] == "N"):
        if is_number:
            yield from run
        else:
            yield from _PIECE.findall("".join(run))


def joined(parts: list[str], ranks: dict[tuple[str, ...], int]) -> list[str]:
    """Join pairs, of those there are the one of the lowest rank first, until none has one."""
    while pairs := [pair for pair in itertools.pairwise(parts) if pair in ranks]:
        first = min(pairs, key=ranks.__getitem__)
        made: list[str] = []
        at = 0
        while at < len(parts):
            found = tuple(parts[at : at + 2]) == first
            made.append("".join(parts[at : at + 2]) if found else parts[at])
            at += 1 + found
        parts = made
    return parts
