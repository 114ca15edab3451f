"""What every store does, against real files and servers."""

import re
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.display.install import pip_install
from accel_lab.errors import InvalidArgument, JournalUnavailable
from accel_lab.journal.stores.cells import mongodb
from accel_lab.journal.stores.cells.cell_store import CellStore
from accel_lab.journal.stores.group import FACTS_BYTES, KEY_BYTES, Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.open_store import open_store
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.stores.store import Store
from tests.journal.conftest import KINDS, URLS, new_store
from tests.journal.samples import content, group, groups, header, unnumbered

SHARED = [kind for kind in KINDS if kind != "memory"]


def test_a_new_store_is_empty(store: Store) -> None:
    assert list(store.groups()) == []
    assert store.content("0" * 32) is None


def test_groups_come_back_in_order_and_numbered_from_one(store: Store) -> None:
    sent = [header(), group(1), group(2, b""), group(3, bytes(range(256)) * 100)]
    assert store.append(sent[:1], {}) == 1
    assert store.append(sent[1:], {}) == 4
    found = list(store.groups())
    assert [one.number for one in found] == [1, 2, 3, 4]
    assert unnumbered(found) == sent
    assert unnumbered(store.groups(after=2)) == sent[2:]
    assert list(store.groups(after=4)) == []


def test_more_groups_than_are_read_at_once(store: Store) -> None:
    sent = [group(position) for position in range(1, 200)]
    store.append(sent, {})
    assert unnumbered(store.groups()) == sent
    assert unnumbered(store.groups(after=100)) == sent[100:]


def test_what_is_appended_while_one_reads_is_read(store: Store) -> None:
    store.append([group(1), group(2)], {})
    reading = store.groups()
    assert next(reading).position == 1
    store.append([group(3)], {})
    assert [one.position for one in reading] == [2, 3]


@pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_001])
def test_contents_come_back(store: Store, size: int) -> None:
    key, data = content(size)
    store.append([group(1, keys=(key,))], {key: data})
    assert store.content(key) == data
    assert store.content("f" * 32) is None


def test_equal_contents_are_kept_once(store: Store) -> None:
    key, data = content(50_000)
    store.append([group(1, keys=(key,))], {key: data})
    store.append([group(2, keys=(key,))], {key: data})
    trimmed = store.trim(1 << 30)
    assert trimmed.kept_bytes == 50_000 + FACTS_BYTES + 2 * group(1, keys=(key,)).weight
    assert store.content(key) == data


def test_a_commit_that_is_repeated_adds_nothing(store: Store) -> None:
    store.append([header(), group(1)], {})
    store.append([header(), group(1), group(2)], {})
    store.append([group(2)], {})
    assert [one.position for one in store.groups()] == [0, 1, 2]


def test_positions_that_were_lost_are_left_out(store: Store) -> None:
    store.append([header(), group(7)], {})
    store.append([group(9)], {})
    assert [one.position for one in store.groups()] == [0, 7, 9]


def test_sessions_are_apart(store: Store) -> None:
    store.append([header("a"), group(1, session="a")], {})
    store.append([header("b"), group(1, session="b")], {})
    store.append([group(2, session="a")], {})
    found = [(one.number, one.session, one.position) for one in store.groups()]
    assert found == [(1, "a", 0), (2, "a", 1), (3, "b", 0), (4, "b", 1), (5, "a", 2)]


def test_trimming_forgets_the_oldest_and_keeps_the_sessions_facts(store: Store) -> None:
    old, new = content(10_000, 1), content(10_000, 2)
    store.append([header(), group(1, bytes(9_000), keys=(old[0],))], dict([old]))
    store.append([group(2, bytes(4_000), keys=(old[0], new[0]))], dict([new]))
    store.append([group(3, bytes(4_000), keys=(new[0],))], {})
    trimmed = store.trim(20_000)
    assert [one.position for one in store.groups()] == [0, 2, 3]
    assert store.content(old[0]) is None
    assert store.content(new[0]) == new[1]
    assert (trimmed.groups, trimmed.entries) == (1, 2)
    assert dict(trimmed.keys) == {old[0]: 10_000}
    of_groups = 8_000 + 2 * FACTS_BYTES + 3 * KEY_BYTES
    assert trimmed.kept_bytes == 10_000 + FACTS_BYTES + of_groups + header().weight


def test_contents_push_no_group_out_that_fits_into_half(store: Store) -> None:
    store.append([header()], {})
    for position in range(1, 11):
        key, data = content(10_000, position)
        store.append([group(position, bytes(500), keys=(key,))], {key: data})
    trimmed = store.trim(30_000)
    assert (trimmed.groups, trimmed.entries) == (0, 0)
    assert [one.position for one in store.groups()] == list(range(11))
    there = [store.content(content(10_000, number)[0]) is not None for number in range(1, 11)]
    assert there == [False] * 8 + [True] * 2, "the newest stay"
    assert trimmed.kept_bytes <= 30_000


def test_a_content_for_which_there_is_never_room_takes_no_other_along(store: Store) -> None:
    small, large = content(1_000, 1), content(50_000, 2)
    store.append([header(), group(1, keys=(small[0],))], dict([small]))
    store.append([group(2, keys=(large[0],))], dict([large]))
    trimmed = store.trim(20_000)
    assert dict(trimmed.keys) == {large[0]: 50_000}
    assert store.content(small[0]) == small[1]


def test_trimming_what_fits_forgets_nothing(store: Store) -> None:
    store.append([header(), group(1), group(2)], {})
    assert store.trim(1000).groups == 0
    assert [one.position for one in store.groups()] == [0, 1, 2]


def test_a_session_goes_with_its_last_group(store: Store) -> None:
    store.append([header("a"), group(1, bytes(500), session="a")], {})
    store.append([header("b"), group(1, bytes(500), session="b")], {})
    store.trim(700)
    assert [(one.session, one.position) for one in store.groups()] == [("b", 0), ("b", 1)]


def test_numbers_go_on_after_trimming(store: Store) -> None:
    store.append([header(), *(group(position, bytes(100)) for position in range(1, 11))], {})
    store.trim(3 * (100 + FACTS_BYTES) + 50)
    assert store.append([group(11)], {}) == 12
    assert [one.position for one in store.groups()] == [0, 8, 9, 10, 11]
    assert [one.position for one in store.groups(after=9)] == [9, 10, 11]
    store.trim(0)
    assert store.append([group(12)], {}) == 13
    assert [one.position for one in store.groups() if one.device] == [12]


def test_reading_goes_on_when_what_it_would_read_next_is_trimmed(store: Store) -> None:
    store.append([group(position, bytes(100)) for position in range(1, 201)], {})
    reading = store.groups()
    assert next(reading).position == 1
    store.trim(1000)
    positions = [one.position for one in reading]
    assert positions == sorted(positions)
    assert positions[-1] == 200


def test_a_closed_store_opens_again(store: Store) -> None:
    store.append([header()], {})
    store.close()
    store.append([group(1)], {})
    assert [one.position for one in store.groups()] == [0, 1]


def test_threads_share_a_store(store: Store) -> None:
    failures: list[BaseException] = []

    def write(session: str) -> None:
        try:
            for position in range(10):
                store.append([group(position, session=session)], {})
                assert list(store.groups())
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(f"s{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = list(store.groups())
    assert [one.number for one in found] == list(range(1, 31))
    for i in range(3):
        assert [one.position for one in found if one.session == f"s{i}"] == list(range(10))


@pytest.mark.parametrize("kind", SHARED)
def test_two_stores_share_a_journal(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    one = new_store(kind, tmp_path, request)
    other = _same(one)
    key, data = content(1000)
    for position in range(5):
        one.append([group(position, session="one", keys=(key,))], {key: data})
        other.append([group(position, session="other")], {})
    assert [found.number for found in one.groups()] == list(range(1, 11))
    assert list(one.groups()) == list(other.groups())
    assert other.content(key) == data
    one.close()
    other.close()


def _same(store: Store) -> Store:
    """Open another store of the same journal, as another process would."""
    from accel_lab.journal.stores.redis import RedisStore
    from accel_lab.journal.stores.sql import SqlStore

    if isinstance(store, SqliteStore):
        return SqliteStore(store.path)
    if isinstance(store, RedisStore):
        options = store._client.connection_pool.connection_kwargs
        return RedisStore(f"redis://127.0.0.1:{options['port']}/0", store._prefix)
    if isinstance(store, CellStore):
        return open_store(URLS[store])
    assert isinstance(store, SqlStore)
    return SqlStore(store._engine.url.render_as_string(hide_password=False))


def test_any_group_comes_back_as_it_was(store: Store) -> None:
    examples = 6 if isinstance(store, CellStore) else 30
    given(sent=st.lists(groups, min_size=1, max_size=5))(
        settings(max_examples=examples)(lambda sent: _comes_back(store, sent))
    )()


def _comes_back(store: Store, sent: list[Group]) -> None:
    last = max((one.number for one in store.groups()), default=0)
    known = [one.position for one in store.groups()]
    begin = max(known, default=-1) + 1
    sent = [msgspec.structs.replace(one, position=begin + i) for i, one in enumerate(sent)]
    store.append(sent, {})
    assert unnumbered(store.groups(after=last)) == sent


def test_memory_is_bounded_and_says_what_it_forgot() -> None:
    store = MemoryStore()
    store.append([header()], {})
    for position in range(1, 1001):
        store.append([group(position, bytes(100))], {})
        store.keep_within(100 * (100 + FACTS_BYTES))
    kept = list(store.groups())
    assert kept[0].device == ""
    assert 70 <= len(kept) <= 101
    assert kept[-1].position == 1000
    assert store.dropped == 2 * (1000 - (len(kept) - 1))
    assert store.numbers() == {one.number for one in kept}
    assert list(store.groups(after=kept[-3].number)) == kept[-2:]


def test_specifications_name_stores(tmp_path: Path) -> None:
    made = MemoryStore()
    assert open_store(made) is made
    assert isinstance(open_store("memory"), MemoryStore)
    found = open_store(str(tmp_path / "x.journal"))
    assert isinstance(found, SqliteStore)
    assert isinstance(open_store(tmp_path / "x.journal"), SqliteStore)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidArgument, match="memory"):
        open_store("")


@pytest.mark.parametrize(
    ("spec", "package", "hint"),
    [
        ("redis://localhost", "redis", re.escape(pip_install("journal"))),
        ("postgresql+psycopg://localhost", "sqlalchemy", re.escape(pip_install("journal"))),
        ("postgresql+psycopg://localhost", "psycopg", r"psycopg\[binary\]"),
        ("dynamodb://eu-west-1/table", "boto3", re.escape(pip_install("dynamodb"))),
        ("mongodb://localhost", "pymongo", re.escape(pip_install("mongodb"))),
        ("cassandra://localhost", "cassandra", re.escape(pip_install("cassandra"))),
    ],
)
def test_a_missing_package_is_named(
    spec: str, package: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(JournalUnavailable, match=hint):
        open_store(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "nonsense://somewhere",
        "postgresql+psycopg://host:port/x",
        "redis://host:port",
        "dynamodb://eu-west-1",
        "dynamodb://eu-west-1/table?endpoint=nowhere",
        "dynamodb://key:secret@eu-west-1/table",
        "dynamodb://eu-west-1/table?colour=red",
        "mongodb://host:port/x",
        "cassandra:///keyspace",
        "cassandra://host:port/keyspace",
        "cassandra://host/no-name",
        "cassandra://host/keyspace?replication=many",
    ],
)
def test_what_names_no_store_is_refused_at_once(spec: str) -> None:
    _require_driver(spec)
    with pytest.raises(InvalidArgument):
        open_store(spec)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("redis://user:secret@localhost:1/0", "redis://localhost:1/0"),
        ("redis://localhost:1?db=2&password=secret", "redis://localhost:1?db=2"),
        ("unix:///run/redis.sock?password=secret", "unix:///run/redis.sock"),
        ("postgresql+psycopg://u:secret@localhost:1/x", "postgresql+psycopg://u:***@localhost:1/x"),
        ("postgresql+psycopg://h/x?user=u&password=secret", "postgresql+psycopg://h/x?user=u"),
        ("mongodb://user:secret@localhost:1/x?authSource=admin", "mongodb://localhost:1/x"),
        ("cassandra://user:secret@one,two/lab", "cassandra://one,two:9042/lab"),
        ("dynamodb://eu-west-1/lab?prefix=mine", "dynamodb://eu-west-1/lab"),
    ],
)
def test_a_password_is_not_shown(spec: str, name: str) -> None:
    _require_driver(spec)
    assert open_store(spec).name == name


def _require_driver(spec: str) -> None:
    """Skip where the package is not installed that a URL needs."""
    packages = {"dynamodb": "boto3", "mongodb": "pymongo", "cassandra": "cassandra"}
    if package := packages.get(spec.partition("://")[0]):
        pytest.importorskip(package)


@pytest.mark.parametrize(
    "spec",
    [
        "redis://127.0.0.1:1/0",
        "postgresql+psycopg://u@127.0.0.1:1/x",
        "dynamodb://eu-west-1/table?endpoint=http://127.0.0.1:1",
        "mongodb://127.0.0.1:1/x",
        "cassandra://127.0.0.1:1/x",
    ],
)
def test_a_server_that_is_not_there_is_named(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _require_driver(spec)
    monkeypatch.setattr(mongodb, "CONNECT_MS", 500)
    store = open_store(spec)
    with pytest.raises(JournalUnavailable, match=r"127\.0\.0\.1") as caught:
        store.append([header()], {})
    assert "Topology" not in str(caught.value)
    with pytest.raises(JournalUnavailable):
        list(store.groups())
    store.close()
