"""What is written down is for this user alone, whatever the process lets others do by default."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.sqlite import SqliteStore
from tests.journal.samples import content, group, header


@pytest.fixture(autouse=True)
def _open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_journal_and_its_log_are_this_users_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.journal")
    key, data = content(10_000)
    store.append([header(), group(1, keys=(key,))], {key: data})
    assert {path.name: mode(path) for path in tmp_path.iterdir()} == {
        "x.journal": 0o600,
        "x.journal-wal": 0o600,
        "x.journal-shm": 0o600,
    }
    store.close()
    assert mode(tmp_path / "x.journal") == 0o600


def test_a_journal_that_is_there_keeps_the_rights_that_its_user_gave_it(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    store = SqliteStore(path)
    store.append([header()], {})
    store.close()
    path.chmod(0o640)
    store.append([group(1)], {})
    store.close()
    assert mode(path) == 0o640


def test_json_lines_are_this_users_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.journal")
    store.append([header()], {})
    journal = Journal(store)
    (tmp_path / "x.jsonl").touch(0o644)  # another takes its place
    journal.to_jsonl(tmp_path / "x.jsonl")
    assert mode(tmp_path / "x.jsonl") == 0o600
