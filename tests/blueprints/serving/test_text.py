"""Text comes in whole characters, and ends before a stop."""

from hypothesis import given
from hypothesis import strategies as st

from accel_lab.blueprints.language import Tokenizer
from accel_lab.blueprints.serving.text import Text

BYTES = Tokenizer.of_bytes()


@given(st.binary(max_size=40))
def test_parts_of_any_bytes_make_what_all_together_do(content: bytes) -> None:
    text = Text(BYTES)
    parts = [text.take(token) for token in content]
    assert "".join([*parts, text.end()]) == content.decode(errors="replace")


def test_a_token_that_the_tokenizer_does_not_have_is_no_text() -> None:
    text = Text(BYTES)
    parts = [text.take(token) for token in (97, 49_000, 0xE2, 50_000, 0x82, 0xAC)]
    assert ("".join([*parts, text.end()]), text.tokens) == ("a\u20ac", 6)


@given(
    content=st.text("abc\u20ac", max_size=20),
    stops=st.lists(st.text("abc\u20ac", min_size=1, max_size=3), max_size=3),
)
def test_nothing_from_the_first_stop_on_is_given(content: str, stops: list[str]) -> None:
    """A stop counts when it is whole; so the first to end is the one, and of these the earliest."""
    text, given_ = Text(BYTES, stops), ""
    for token in content.encode():
        given_ += text.take(token)
        if text.is_stopped:
            break
    given_ += text.end()
    wanted, stopped = content, False
    for end in range(1, len(content) + 1):
        found = [content[:end].find(one) for one in stops if one in content[:end]]
        if found:
            wanted, stopped = content[: min(found)], True
            break
    assert given_ == wanted
    assert text.is_stopped == stopped
