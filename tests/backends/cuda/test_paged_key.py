"""Which messages to a cache are cuDNN's, and how seldom that needs a new plan; no CUDA needed."""

from types import SimpleNamespace
from typing import Any

import pytest

from accel_lab.backends.cuda.attention.paged import PagedKey, paged_key

CACHE = (100, 2, 16, 64)


def message(**other: Any) -> Any:
    """Return a message that is cuDNN's, but for what is said."""
    q = SimpleNamespace(
        dtype=other.pop("dtype", "bfloat16"), shape=other.pop("shape", (3, 8, 1, 64))
    )
    plain = {"q": q, "sink": None, "alibi": False, "window": 0, "scale": None, "lse": False}
    return SimpleNamespace(**{**plain, **other})


def test_a_sequence_that_grows_needs_few_plans() -> None:
    keys = [paged_key(message(), CACHE, [5, n, 1]) for n in range(1, 1025)]
    pages = [key.pages for key in keys if key is not None]
    assert len(pages) == 1024
    assert all(16 * has >= max(n, 5) for n, has in enumerate(pages, 1))
    assert [*dict.fromkeys(pages)] == [1, 2, 4, 8, 16, 32, 64]
    assert len({*keys}) == 7


def test_a_key_is_all_that_a_plan_depends_on() -> None:
    plain = PagedKey("bfloat16", (3, 8, 1, 64), CACHE, 1, 0.125, lse=False)
    assert paged_key(message(), CACHE, [1, 2, 3]) == plain
    told = paged_key(message(scale=0.5, lse=True), CACHE, [1, 2, 3])
    assert told == plain._replace(scale=0.5, lse=True)


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": "float32"},
        {"shape": (3, 8, 2, 64)},
        {"shape": (3, 8, 1, 60)},
        {"sink": "a buffer"},
        {"alibi": True},
        {"window": 8},
    ],
    ids=str,
)
def test_what_it_lacks_is_left_to_products(other: dict[str, Any]) -> None:
    assert paged_key(message(**other), CACHE, [1, 2, 3]) is None


@pytest.mark.parametrize("page_size", [1, 8, 48])
def test_pages_that_were_not_tried_are_left_to_products(page_size: int) -> None:
    assert paged_key(message(), (100, 2, page_size, 64), [1, 2, 3]) is None


def test_parts_of_prompts_are_chunks_that_were_appended() -> None:
    chunk = message(shape=(2, 8, 128, 64))
    assert paged_key(chunk, CACHE, [128, 300]) == PagedKey(
        "bfloat16", (2, 8, 128, 64), CACHE, 32, 0.125, lse=False
    )
    assert paged_key(chunk, CACHE, [127, 300]) is None
    assert paged_key(message(shape=(2, 8, 0, 64)), CACHE, [127, 300]) is None


@pytest.mark.parametrize("lengths", [[], [1, 0, 3]], ids=str)
def test_without_a_token_there_is_nothing_to_decode(lengths: list[int]) -> None:
    assert paged_key(message(), CACHE, lengths) is None
