"""Servers that are gone, slow, full, shared or back again: nothing is lost, and nothing twice."""

import json
import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from accel_lab.errors import JournalUnavailable
from accel_lab.journal.stores import redis as redis_store
from accel_lab.journal.stores.cells import cell_store, dynamodb, mongodb, trimming
from accel_lab.journal.stores.cells.cell_store import CellStore
from accel_lab.journal.stores.open_store import open_store
from accel_lab.journal.stores.store import Store
from tests.journal.between import Between
from tests.journal.samples import content, group, header
from tests.journal.servers import Elsewhere

KINDS = ("postgres", "redis", "dynamodb", "dynalite", "mongodb")
SHORT_S = 1.0


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def between(kind: str, request: pytest.FixtureRequest) -> Iterator[Between]:
    server = request.getfixturevalue(kind)
    if isinstance(server, Elsewhere):
        pytest.skip("nothing can stand between here and a server elsewhere")
    with Between(server.port) as made:
        yield made


@pytest.fixture
def store(
    kind: str,
    between: Between,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Store]:
    """A store behind what stands between, which waits for no answer for long."""
    monkeypatch.setattr(redis_store, "ANSWER_S", SHORT_S)
    monkeypatch.setattr(dynamodb, "ANSWER_S", SHORT_S)
    monkeypatch.setattr(mongodb, "ANSWER_MS", int(1000 * SHORT_S))
    made = open_store(place(kind, between.port, request))
    yield made
    made.close()


def place(kind: str, port: int, request: pytest.FixtureRequest) -> str:
    """Return a URL of a journal that nobody has used."""
    server = request.getfixturevalue(kind)
    name = f"faults_{request.node.name.partition('[')[0]}"[-60:].replace("test_", "")
    if kind == "redis":
        number = sorted(request.session.items, key=lambda item: item.nodeid).index(request.node)
        return f"redis://127.0.0.1:{port}/{1 + number % 15}"
    if kind == "postgres":
        import sqlalchemy as sa

        engine = sa.create_engine(server.url)
        with engine.begin() as db:
            db.execute(sa.text(f"CREATE SCHEMA {name}"))
        engine.dispose()
        url = server.url.replace(str(server.port), str(port))
        return f"{url}?options=-csearch_path%3D{name}"
    return str(server.url(name)).replace(str(server.port), str(port))


def positions(store: Store) -> list[int]:
    return [one.position for one in store.groups()]


def test_a_server_that_is_gone_is_named_and_found_again(
    store: Store, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mongodb, "CONNECT_MS", 3000)  # each of three calls waits that long
    key, data = content(300_000)
    store.append([header(), group(1, bytes(5000), keys=(key,))], {key: data})
    between.go()
    for call in (
        lambda: store.append([group(2)], {}),
        lambda: list(store.groups()),
        lambda: store.trim(0),
    ):
        with pytest.raises(JournalUnavailable, match=str(between.port)):
            call()
    between.come()
    assert store.append([group(2)], {}) == 3
    assert positions(store) == [0, 1, 2]
    assert store.content(key) == data


def test_an_answer_that_never_came_is_no_second_commit(
    kind: str, store: Store, between: Between
) -> None:
    """The server has the commit, and who sent it does not know."""
    if kind == "postgres":
        pytest.skip("libpq waits for an answer for as long as the connection stands")
    store.append([header(), group(1)], {})
    between.mute = True
    with pytest.raises(JournalUnavailable):
        store.append([group(2, bytes(5000))], {})
    between.mute = False
    store.append([group(2, bytes(5000)), group(3)], {})
    assert positions(store) == [0, 1, 2, 3]
    assert [one.number for one in store.groups()] == [1, 2, 3, 4]


def test_a_full_server_is_named_and_what_it_had_is_there(
    kind: str, store: Store, between: Between, request: pytest.FixtureRequest
) -> None:
    if kind == "postgres":
        pytest.skip("a full disk of PostgreSQL's own cannot be had here")
    store.append([header(), group(1)], {})
    if kind == "redis":
        import redis

        server = redis.Redis(port=request.getfixturevalue("redis").port)
        server.config_set("maxmemory", 1)
    else:
        between.answer = _full_mongodb if kind == "mongodb" else _full_dynamodb
    try:
        with pytest.raises(JournalUnavailable, match=r"memory|disk|throughput"):
            store.append([group(2, bytes(5000))], {})
    finally:
        between.answer = None
        if kind == "redis":
            server.config_set("maxmemory", 0)
            server.close()
    store.append([group(2, bytes(5000))], {})
    assert positions(store) == [0, 1, 2]


def _full_dynamodb(request: bytes) -> bytes:
    """What DynamoDB answers when it takes no more for now."""
    begin, _, sent = request.partition(b"\r\n\r\n")
    wanted = re.search(rb"(?i)content-length: *(\d+)", begin)
    if wanted is None or len(sent) < int(wanted[1]):
        return b""
    kind = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"
    text = "The level of configured provisioned throughput for the table was exceeded"
    body = json.dumps({"__type": kind, "message": text}).encode()
    length = f"Content-Length: {len(body)}"
    kept = "Content-Type: application/x-amz-json-1.0"
    head = f"HTTP/1.1 400 Bad Request\r\n{kept}\r\n{length}\r\n\r\n"
    return head.encode() + body


def _full_mongodb(request: bytes) -> bytes:
    """What MongoDB answers when its disk is full: OP_MSG, error 14031."""
    import bson

    if len(request) < 4 or len(request) < struct.unpack_from("<i", request)[0]:
        return b""
    number = struct.unpack_from("<i", request, 4)[0]
    error: dict[str, Any] = {"ok": 0.0, "code": 14031, "codeName": "OutOfDiskSpace"}
    body = bytes(5) + bson.encode(error | {"errmsg": "out of disk space"})
    return struct.pack("<4i", 16 + len(body), 1, number, 2013) + bytes(body)


def test_two_writers_share_a_server(
    kind: str, store: Store, between: Between, request: pytest.FixtureRequest
) -> None:
    """At once: each number is given once, and each session is in order."""
    if kind in ("postgres", "redis"):
        pytest.skip("the contract has it, in threads and in two stores")
    name = getattr(store, "name", "")
    url = place(kind, between.port, request)
    assert str(between.port) in name
    stores = [open_store(url) for _ in range(2)]
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for position in range(6):
                stores[number].append([group(position, session=f"s{number}")], {})
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = list(store.groups())
    assert [one.number for one in found] == list(range(1, 13))
    for number in range(2):
        assert [o.position for o in found if o.session == f"s{number}"] == list(range(6))
    for one in stores:
        one.close()


# Stores of cells: whatever call is the last one before a crash.


class Crash(Exception):
    """The process ends here."""


class Counting:
    """Cells that pass calls on until one that fails."""

    def __init__(self, cells: Any) -> None:
        self.cells, self.left = cells, -1
        self.name = cells.name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            if self.left == 0:
                raise Crash
            self.left -= 1
            return getattr(self.cells, name)(*given)

        return call


def test_an_append_that_ends_anywhere_is_whole_or_not_there_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("mongodb")
    key, data = content(3000)
    calls = 0
    for calls in range(30):
        cells: Any = Counting(mongodb.MongoDbCells(server.url("crash"), f"c{calls}"))
        store = CellStore(cells)
        store.append([header(), group(1)], {})
        cells.left = calls
        with suppress(Crash):
            store.append([group(2, bytes(3000), keys=(key,)), group(3)], {key: data})
        ended, cells.left = cells.left > 0, -1
        found = positions(store)
        assert found in ([0, 1], [0, 1, 2, 3])
        if found == [0, 1, 2, 3]:
            assert store.content(key) == data
        else:  # somebody trims meanwhile: what may still be committed stays
            store.trim(1 << 20)
            store.append([group(2, bytes(3000), keys=(key,)), group(3)], {key: data})
        assert positions(store) == [0, 1, 2, 3]
        assert store.content(key) == data
        monkeypatch.setattr(trimming, "ABANDONED_S", -10.0)
        store.append([group(4)], {})
        store.trim(0)
        monkeypatch.undo()
        left = {one["_id"].partition("|")[0] for one in _documents(cells.cells)}
        assert {place for place in left if "/content" in place} == set()
        assert len([place for place in left if "/data" in place]) <= 2 if not ended else True
        store.close()
        if ended:
            break
    assert calls > 8


def _documents(cells: Any) -> list[dict[str, Any]]:
    with cells._open() as journal:
        return list(journal.find({}, {"_id": 1}))


def test_a_content_that_another_forgets_meanwhile_is_brought_again(
    request: pytest.FixtureRequest,
) -> None:
    server = request.getfixturevalue("mongodb")
    key, data = content(3000)
    cells: Any = mongodb.MongoDbCells(server.url("crash"), "forgotten")
    store, other = (
        CellStore(cells),
        CellStore(mongodb.MongoDbCells(server.url("crash"), "forgotten")),
    )
    store.append([header("a"), group(1, session="a", keys=(key,))], {key: data})
    put_new = cells.put_new

    def forget_first(partition: str, at: str, value: bytes) -> bool:
        if partition.endswith("commits"):
            other.trim(1)
            assert other.content(key) is None
        return bool(put_new(partition, at, value))

    cells.put_new = forget_first
    store.append([group(2, session="a", keys=(key,))], {key: data})
    assert other.content(key) == data
    assert cell_store.BRINGS > 1
    store.close()
    other.close()


def test_a_commit_that_arrives_late_is_no_second_one(request: pytest.FixtureRequest) -> None:
    """It was on its way when its sender gave it up and tried again with more."""
    server = request.getfixturevalue("mongodb")
    cells: Any = mongodb.MongoDbCells(server.url("crash"), "late")
    store = CellStore(cells)
    store.append([header(), group(1)], {})
    put_new, late = cells.put_new, list[tuple[str, str, bytes]]()

    def delayed(*given: Any) -> bool:
        if not given[0].endswith("commits"):
            return bool(put_new(*given))
        late.append(given)
        raise JournalUnavailable("nobody answered")

    def overtaken(*given: Any) -> bool:
        if given[0].endswith("commits") and late:
            assert put_new(*late.pop())
        return bool(put_new(*given))

    for sent, more in ((2, 1), (4, 2), (7, 0)):
        cells.put_new = delayed
        with pytest.raises(JournalUnavailable):
            store.append([group(sent, bytes(3000))], {})
        cells.put_new = overtaken
        again = range(sent, sent + 1 + more)
        store.append([group(position, bytes(3000)) for position in again], {})
        assert positions(store) == list(range(sent + 1 + more))
    assert all(one.data == bytes(3000) for one in store.groups() if one.position > 1)
    store.close()
