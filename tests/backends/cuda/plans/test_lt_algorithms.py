"""The algorithms of products on disk: for one card and one version, shared, and never trusted."""

import stat
from pathlib import Path

import pytest

from accel_lab.backends.cuda.blas_lt.algorithms import (
    BYTES,
    SAVED_AFTER,
    Algorithm,
    Algorithms,
)

GUESSED = Algorithm(bytes(range(BYTES)), 1024)
MEASURED = Algorithm(bytes(BYTES), 0, measured=True)
KEY = ("GELU", (5, 6))


def opened(folder: Path, card: str = "H100", version: int = 130100) -> Algorithms:
    return Algorithms(folder, card, version)


def test_what_was_measured_is_there_for_the_next_process(tmp_path: Path) -> None:
    first = opened(tmp_path / "cache")
    first.put(KEY, MEASURED)
    assert opened(tmp_path / "cache").get(KEY) == MEASURED
    assert opened(tmp_path / "cache").get(("GELU", (5, 7))) is None
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


@pytest.mark.parametrize(("card", "version"), [("H200", 130100), ("H100", 130200)])
def test_those_of_another_card_or_version_are_others(
    tmp_path: Path, card: str, version: int
) -> None:
    opened(tmp_path).put(KEY, MEASURED)
    assert opened(tmp_path, card, version).get(KEY) is None


def test_guesses_are_written_many_at_once_or_when_it_ends(tmp_path: Path) -> None:
    first = opened(tmp_path)
    for at in range(SAVED_AFTER - 1):
        first.put(at, GUESSED)
    assert not first.path.exists()
    first.put("last", GUESSED)
    assert len(opened(tmp_path)) == SAVED_AFTER
    first.put("one more", GUESSED)
    first.save()
    assert opened(tmp_path).get("one more") == GUESSED
    assert [one.suffix for one in tmp_path.iterdir()] == [".json"]


def test_contexts_keep_what_others_have_found_and_measured(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    one.put(KEY, MEASURED)
    one.put("of one", MEASURED)
    other.put(KEY, GUESSED)
    other.put("of the other", MEASURED)
    both = opened(tmp_path)
    assert both.get(KEY) == MEASURED, "a guess is in place of what was measured"
    assert both.get("of one") == both.get("of the other") == MEASURED


def test_the_oldest_guesses_make_room(tmp_path: Path) -> None:
    first = Algorithms(tmp_path, "H100", 130100, most=8)
    first.put(KEY, MEASURED)
    for at in range(100):
        first.put(at, GUESSED)
        assert len(first) <= 8
    first.save()
    for one in (first, opened(tmp_path)):
        assert len(one) <= 8
        assert one.get(0) is None
        assert one.get(99) == GUESSED
        assert one.get(KEY) == MEASURED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"a": 1}',
        '{"a": ["00", 1, true]}',
        f'{{"a": ["{"00" * BYTES}", "x", true]}}',
    ],
)
def test_a_damaged_file_is_none(tmp_path: Path, text: str) -> None:
    first = opened(tmp_path)
    first.path.write_text(text)
    again = opened(tmp_path)
    assert len(again) == 0
    again.put(KEY, MEASURED)
    assert opened(tmp_path).get(KEY) == MEASURED


def test_what_others_could_have_written_is_not_read(tmp_path: Path) -> None:
    opened(tmp_path).put(KEY, MEASURED)
    tmp_path.chmod(0o777)
    assert opened(tmp_path).get(KEY) is None


def test_without_a_disk_they_are_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    first = opened(tmp_path / "file")
    first.put(KEY, MEASURED)
    assert first.get(KEY) == MEASURED
    first.drop(KEY)
    assert first.get(KEY) is None
