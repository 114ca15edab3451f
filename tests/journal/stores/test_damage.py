"""A journal file that was cut off, changed or overwritten, and writers that were killed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from accel_lab.errors import JournalDamaged, JournalError
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.sqlite import SqliteStore
from tests.journal.samples import content, group, header
from tests.project import ROOT

KILLS = 10
MANY_KILLS = int(os.environ.get("ACCEL_LAB_KILLS", "25"))

TRIMS_EVERY = 50
WRITER = """
import itertools, sys, time
from accel_lab.journal.stores.sqlite import SqliteStore
from tests.journal.samples import content, group, header

store = SqliteStore(sys.argv[1])
session = sys.argv[2]
store.append([header(session)], {})
for position in itertools.count(1):
    key, data = content(50_000, position)
    some = position % 7 == 0
    one = group(position, bytes(position % 3000), session=session, keys=(key,) if some else ())
    store.append([one], {key: data} if some else {})
    sys.stdout.write(f"{position}\\n")
    sys.stdout.flush()
    if position % int(sys.argv[3]) == 0:
        store.trim(400_000)
    time.sleep(0.001)
"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with 300 groups of several sizes, and one upload of several pages."""
    path = tmp_path_factory.mktemp("damage") / "whole.journal"
    store = SqliteStore(path)
    key, data = content(30_000)
    store.append([header()], {})
    rng = random.Random(5)
    for position in range(1, 301):
        size = rng.choice((10, 200, 3000, 9000))
        keys = (key,) if position == 100 else ()
        store.append([group(position, rng.randbytes(size), keys=keys)], {key: data} if keys else {})
    store.close()
    return path


def read(path: Path) -> tuple[list[Group], JournalError | None]:
    """Return what can be read, and what ended it."""
    found: list[Group] = []
    try:
        for one in SqliteStore(path).groups():
            found.append(one)  # noqa: PERF402 - what came before an error counts
    except JournalError as error:
        return found, error
    return found, None


def cut(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(len(data))]


def flip(data: bytearray, rng: random.Random) -> bytearray:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def overwrite(data: bytearray, rng: random.Random) -> bytearray:
    at, size = rng.randrange(len(data)), rng.choice((10, 1000, 20_000))
    size = min(size, len(data) - at)
    data[at : at + size] = rng.randbytes(size)
    return data


def clear(data: bytearray, rng: random.Random) -> bytearray:
    at = rng.randrange(len(data)) // 4096 * 4096
    data[at : at + 4096] = bytes(4096)
    return data


def behead(data: bytearray, rng: random.Random) -> bytearray:
    data[: rng.randrange(16, 200)] = rng.randbytes(200)
    return data


@pytest.mark.parametrize("damage", [cut, flip, overwrite, clear, behead])
@pytest.mark.parametrize("seed", range(25))
def test_everything_before_the_damage_is_read_and_then_it_is_named(
    damage: Callable[[bytearray, random.Random], bytearray],
    seed: int,
    journal: Path,
    tmp_path: Path,
) -> None:
    rng = random.Random(f"{damage.__name__} {seed}")
    whole, _ = read(journal)
    path = tmp_path / "x.journal"
    path.write_bytes(damage(bytearray(journal.read_bytes()), rng))
    found, error = read(path)
    assert found == whole[: len(found)]  # nothing wrong is ever read
    if len(found) < len(whole):
        assert isinstance(error, JournalDamaged), error


@pytest.mark.parametrize("page", range(2, 40, 3))
def test_a_damaged_page_costs_nothing_that_stands_before_it(
    page: int, journal: Path, tmp_path: Path
) -> None:
    """What was appended before the page was first used is read."""
    data = bytearray(journal.read_bytes())
    path = tmp_path / "x.journal"
    store = SqliteStore(path)
    rng = random.Random(5)
    key, uploaded = content(30_000)
    store.append([header()], {})
    before = 1
    for position in range(1, 301):
        size = rng.choice((10, 200, 3000, 9000))
        keys = (key,) if position == 100 else ()
        store.append(
            [group(position, rng.randbytes(size), keys=keys)], {key: uploaded} if keys else {}
        )
        assert store._writing is not None
        (pages,) = store._writing.execute("PRAGMA page_count").fetchone()
        if pages >= page:
            break
        before = position + 1
    store.close()
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    found, error = read(path)
    first_pages = 8  # the tables' roots and indexes, and the map of pages
    assert page <= first_pages or len(found) >= before - 1
    assert error is None or isinstance(error, JournalDamaged)


def test_cut_off_at_every_page(journal: Path, tmp_path: Path) -> None:
    data = journal.read_bytes()
    path = tmp_path / "x.journal"
    counts = []
    for pages in range(len(data) // 4096):
        path.write_bytes(data[: pages * 4096])
        found, error = read(path)
        assert isinstance(error, JournalDamaged)
        counts.append(len(found))
    assert counts == sorted(counts)
    assert counts[-1] >= 298


def test_a_damaged_content_is_never_handed_out(journal: Path, tmp_path: Path) -> None:
    key, data = content(30_000)
    raw = bytearray(journal.read_bytes())
    at = raw.find(data[:64])
    assert at > 0
    raw[at + 5] ^= 4
    path = tmp_path / "x.journal"
    path.write_bytes(raw)
    assert SqliteStore(journal).content(key) == data
    with pytest.raises(JournalDamaged, match=key):
        SqliteStore(path).content(key)
    assert len(read(path)[0]) == 301


@pytest.mark.parametrize("data", [b"", b"hello", b"SQLite format 3\0", bytes(8192)])
def test_what_is_no_journal_is_damaged(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    path.write_bytes(data)
    found, error = read(path)
    assert (found, type(error)) == ([], JournalDamaged)


@pytest.mark.parametrize("gone", ["number = 150", "number > 290", "number < 10"])
def test_groups_that_are_missing_are_named(gone: str, journal: Path, tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "x.journal"
    shutil.copy(journal, path)
    db = sqlite3.connect(path)
    db.execute(f"DELETE FROM groups WHERE {gone}")  # noqa: S608
    db.commit()
    db.close()
    found, error = read(path)
    assert isinstance(error, JournalDamaged)
    assert "missing" in str(error)
    assert len(found) in (149, 290, 0)


def test_a_journal_of_a_later_version_is_refused_by_name(journal: Path, tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "x.journal"
    shutil.copy(journal, path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(JournalError, match="schema 7"):
        list(SqliteStore(path).groups())
    with pytest.raises(JournalError, match="schema 7"):
        SqliteStore(path).append([header("other")], {})


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal whose writer was killed before its log went into the file."""
    path = tmp_path_factory.mktemp("left") / "x.journal"
    killed(path, ["one"], 0.1)
    return path


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_log_is_read_up_to_the_damage_and_named(
    seed: int, left: Path, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    log = left.with_name("x.journal-wal")
    whole, error = read(left)
    assert error is None
    path = tmp_path / "x.journal"
    shutil.copy(left, path)
    data = bytearray(log.read_bytes())
    frames = [
        frame
        for frame in range((len(data) - 32) // 4120)
        if data[16:24] == data[32 + frame * 4120 :][8:16]  # of this log, not of one before
    ]
    commits = [frame for frame in frames if any(data[32 + frame * 4120 :][4:8])]
    frame = rng.choice(frames)
    at = 32 + frame * 4120 + rng.randrange(4120) if seed else 5
    data[at] ^= 1 << rng.randrange(8)
    path.with_name("x.journal-wal").write_bytes(data)
    found, error = read(path)
    assert found == whole[: len(found)]
    is_of_the_last = frame > max(commits[:-1], default=-1)  # which then looks unfinished
    assert is_of_the_last or isinstance(error, JournalDamaged)
    store = SqliteStore(path)
    if error is not None and found:
        with pytest.raises(JournalDamaged):
            store.append([header("next")], {})
    if found:
        assert store.append([header("next")], {}) == len(found) + 1
        assert read(path)[1] is None
    store.close()


def killed(path: Path, sessions: list[str], after_s: float) -> list[int]:
    """Let processes write for a while, kill them, and return what each said was committed."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), session, str(TRIMS_EVERY)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for session in sessions
    ]
    committed = []
    try:
        for writer in writers:
            assert writer.stdout is not None
            committed.append(int(writer.stdout.readline()))
        threading.Event().wait(after_s)
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
    for i, writer in enumerate(writers):
        rest, _ = writer.communicate()
        whole = rest.rpartition(b"\n")[0].split()
        committed[i] = int(whole[-1]) if whole else committed[i]
    return committed


def kill_and_look(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = folder / f"{seed}.journal"
    sessions = ["one", "other"][: 1 + seed % 2]
    committed = killed(path, sessions, rng.uniform(0, 0.4))
    found, error = read(path)
    assert error is None
    for session, last in zip(sessions, committed, strict=True):
        positions = [one.position for one in found if one.session == session and one.device]
        assert positions == list(range(positions[0], positions[-1] + 1))
        assert positions[-1] in (last, last + 1)
        assert any(one.session == session and not one.device for one in found)
    store = SqliteStore(path)
    for one in found:
        if one.device:
            assert one.data == bytes(one.position % 3000)
        for key in one.keys:  # a trim may have kept the group alone
            assert store.content(key) is not None or max(committed) >= TRIMS_EVERY
    assert store.append([header("next"), group(1, session="next")], {}) == found[-1].number + 2
    assert len(list(store.groups())) == len(found) + 2
    store.close()


@pytest.mark.parametrize("seed", range(KILLS))
def test_what_a_killed_process_committed_is_there(seed: int, tmp_path: Path) -> None:
    kill_and_look(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_many_killed_processes_committed_is_there(tmp_path: Path) -> None:
    for seed in range(KILLS, KILLS + MANY_KILLS):
        kill_and_look(tmp_path, seed)
