"""Text becomes tokens by pairs that are joined, and comes back whole."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.blueprints.language import Tokenizer
from accel_lab.blueprints.language.tokenizer import pieces
from accel_lab.errors import InvalidArgument

MARK = "<|im_end|>"
LEARNED_OF = "the cat and the other cat sat there, then they ate the hat that the rat had had"


def learned(count: int) -> tuple[list[str], list[str]]:
    """Learn pairs as the paper does: the most frequent neighbours become one, again and again."""
    tokens, merges = Tokenizer.of_bytes().tokens, []
    words = [list(word.replace(" ", "\u0120")) for word in pieces(LEARNED_OF)]
    for _ in range(count):
        counts = Counter(pair for word in words for pair in pairwise(word))
        (a, b), _ = counts.most_common(1)[0]
        merges.append(f"{a} {b}")
        tokens.append(a + b)
        words = [merged(word, a, b) for word in words]
    return tokens, merges


def merged(word: list[str], a: str, b: str) -> list[str]:
    """Join each a and b that stand beside each other, from the left."""
    made: list[str] = []
    for part in word:
        if part == b and made and made[-1] == a:
            made[-1] = a + b
        else:
            made.append(part)
    return made


TOKENS, MERGES = learned(25)
TOKENIZER = Tokenizer([*TOKENS, MARK], MERGES, [MARK])


@given(st.text(st.characters(codec="utf-8")))
def test_a_text_comes_back_whole(text: str) -> None:
    for tokenizer in (TOKENIZER, Tokenizer.of_bytes()):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert "".join(pieces(text)) == text
    assert bytes(Tokenizer.of_bytes().encode(text)) == text.encode()


@given(st.text("thecasn od'1", max_size=40))
def test_pairs_are_joined_as_they_were_learned(text: str) -> None:
    """Going through the pairs in their order, each joined wherever it is, gives the same."""
    wanted = []
    for piece in pieces(text):
        word = list(piece.replace(" ", "\u0120"))
        for pair in MERGES:
            word = merged(word, *pair.split(" "))
        wanted += word
    assert [TOKENIZER.tokens[number] for number in TOKENIZER.encode(text)] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Hello  world's end!", ["Hello", " ", " world", "'s", " end", "!"]),
        (
            "in 2024,  x_1\n\n y",
            ["in", " ", "2", "0", "2", "4", ",", " ", " x", "_", "1", "\n\n", " y"],
        ),
        ("né ½² ٣ 日本 !? ", ["né", " ", "½", "²", " ", "٣", " 日本", " !?", " "]),
        ("We'LL don't", ["We", "'", "LL", " don", "'t"]),
        ("", []),
    ],
)
def test_pieces_are_those_of_gpt_2_with_digits_alone(text: str, wanted: list[str]) -> None:
    assert list(pieces(text)) == wanted


def test_a_mark_is_a_token_only_where_that_is_asked_for() -> None:
    text = f"the cat{MARK}the"
    whole = TOKENIZER.encode(text, special=True)
    assert whole.count(TOKENIZER.tokens.index(MARK)) == 1
    assert TOKENIZER.tokens.index(MARK) not in TOKENIZER.encode(text)
    assert TOKENIZER.decode(whole) == TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_bytes_have_numbers_of_their_own_and_half_a_character_is_shown() -> None:
    tokenizer = Tokenizer.of_bytes()
    assert tokenizer.encode("aé") == [97, 0xC3, 0xA9]
    assert tokenizer.decode([97, 0xC3]) == "a\ufffd"


def test_what_no_token_has_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="there is no token 'b', for 'ab'"):
        Tokenizer(["a"], []).encode("ab")
