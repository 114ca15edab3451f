"""What is committed, what waits for a store that is away, and what the record says of contents."""

import itertools
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accel_lab.actor.events import EventStream
from accel_lab.compute.lineage.content_store import Contents, key_of
from accel_lab.compute.lineage.markers import Content, ContextBegan, ContextEnded, Result, SentBy
from accel_lab.compute.lineage.record_thread import RecordThread
from accel_lab.compute.lineage.recorder import Kept, Recorder
from accel_lab.compute.message.builtin import Put
from accel_lab.compute.output.cell_origin import Origin
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.errors import JournalDamaged, JournalUnavailable
from accel_lab.journal.entries.entry import Entry, entries_of
from accel_lab.journal.events import JournalDropped, JournalFailed, JournalResumed
from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.open_store import open_store
from accel_lab.journal.stores.redis import RedisStore
from accel_lab.journal.stores.sql import SqlStore
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.stores.store import Store, Trimmed
from accel_lab.journal.writing.facts import Facts
from accel_lab.journal.writing.gatherer import GROUP_BYTES, GROUP_PARTS
from accel_lab.journal.writing.writer import Writer
from tests.journal.servers import Dynalite, Mongo, Postgres, Redis, Server, running


def facts() -> Facts:
    return Facts("lab", "host", {"cpu0": "a CPU"}, {"numpy": "2"})


def put(seq: int, data: bytes = b"\x01") -> bytes:
    return encode_entry(seq, seq, None, Put((len(data),), "uint8", data))


class Bench:
    """A recorder, a record thread that is flushed by hand, and a writer."""

    def __init__(self, store: Store, **options: Any) -> None:
        self.store = store
        self.events = EventStream()
        self.contents = Contents()
        self.writer = Writer(store, self.contents, self.events, facts, **options)
        self.record_thread = RecordThread("test", _fail)
        self.recorder = self.device("cpu0")
        self.record_thread.after.append(self.writer)
        self.seq = itertools.count(1)

    def device(self, name: str) -> Recorder:
        recorder = Recorder(name, self.contents, self.record_thread.rouse)
        recorder.followers.append(self.writer.follow(name))
        self.record_thread.follow(recorder)
        return recorder

    def send(self, count: int = 1, data: bytes = b"\x01") -> None:
        for _ in range(count):
            self.recorder.append(put(next(self.seq), data))

    def upload(self, data: bytes) -> None:
        seq = next(self.seq)
        self.recorder.append(put(seq))
        self.recorder.keep(seq, Kept(data))

    def write(self) -> None:
        self.record_thread.flush()
        self.writer.flush()

    def entries(self) -> list[Entry]:
        return list(entries_of(self.store.groups()))

    def seqs(self) -> list[int]:
        return [entry.seq for entry in self.entries() if entry.kind == "message"]


def _fail(error: BaseException) -> None:
    raise AssertionError(error)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(MemoryStore())
    yield made
    made.writer.close()


class Gate(Store):
    """A store that can be shut, as a server that is away, or made to wait."""

    name = "gate"

    def __init__(self) -> None:
        self.inner = MemoryStore(None)
        self.shut = False
        self.open = threading.Event()
        self.open.set()
        self.calls = 0

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        self.calls += 1
        assert self.open.wait(30)
        if self.shut:
            raise JournalUnavailable("the gate is shut")
        return self.inner.append(groups, contents)

    def groups(self, after: int = 0) -> Iterator[Group]:
        return self.inner.groups(after)

    def content(self, key: str) -> bytes | None:
        return self.inner.content(key)

    def trim(self, keep_bytes: int) -> Trimmed:
        return self.inner.trim(keep_bytes)

    def close(self) -> None:
        self.inner.close()


def test_the_facts_of_the_session_come_first(bench: Bench) -> None:
    assert list(bench.store.groups()) == []
    bench.send(3)
    bench.write()
    bench.send(2)
    bench.write()
    found = list(bench.store.groups())
    assert [group.position for group in found] == [0, 1, 2]
    assert {group.session for group in found} == {bench.writer.session}
    first, *rest = bench.entries()
    assert first.kind == "session"
    assert first.fields["backend"] == "host"
    assert first.fields["devices"] == {"cpu0": "a CPU"}
    assert first.fields["schema"] == 1
    assert [entry.seq for entry in rest] == [1, 2, 3, 4, 5]


def test_a_pass_is_one_group_for_each_device(bench: Bench) -> None:
    other = bench.device("cpu1")
    bench.send(5)
    other.append(put(1))
    bench.write()
    bench.write()
    found = [(group.device, group.count, group.entries) for group in bench.store.groups()]
    assert found == [("", 1, 1), ("cpu0", 5, 5), ("cpu1", 1, 1)]


def test_a_large_pass_is_cut_into_groups_of_whole_entries(bench: Bench) -> None:
    bench.send(GROUP_PARTS + 10)
    bench.write()
    bench.send(100, bytes(16_000))
    bench.write()
    found = list(bench.store.groups())[1:]
    assert len(found) >= 2 + 100 * 16_000 // GROUP_BYTES
    assert all(group.count <= GROUP_PARTS for group in found)
    assert all(group.nbytes <= GROUP_BYTES for group in found)
    assert bench.seqs() == list(range(1, GROUP_PARTS + 111))


def test_each_group_knows_where_it_begins(bench: Bench) -> None:
    bench.recorder.mark(ContextBegan(1, 1.0, 10))
    bench.recorder.sent_by(Origin(7), 1.0)
    bench.send()
    bench.write()
    bench.send()
    bench.recorder.mark(ContextEnded(1, 2.0, []))
    bench.write()
    bench.send()
    bench.recorder.sent_by(Origin(None), 1.0)
    bench.write()
    bench.send()
    bench.write()
    groups = list(bench.store.groups())[1:]
    found = [(group.generation, group.cell) for group in groups]
    assert found == [(1, None), (1, 7), (2, 7), (2, None)]
    assert [group.plain for group in groups] == [False, False, True, True]
    entries = bench.entries()
    for group in bench.store.groups():
        # A group that is read by itself says the same of its entries as when all are read.
        alone = list(entries_of(bench.store.groups(group.number - 1)))
        rest = entries[len(entries) - len(alone) :]
        assert [(e.cell, e.generation, e.seq) for e in alone] == [
            (e.cell, e.generation, e.seq) for e in rest
        ]
        assert group.entries == sum(entry.group == group.number for entry in rest)


def test_contents_go_with_the_record(bench: Bench) -> None:
    data = bytes(range(256)) * 50
    bench.upload(data)
    bench.upload(data)
    bench.write()
    (group,) = list(bench.store.groups())[1:]
    assert group.keys == (key_of(data),)
    assert bench.store.content(key_of(data)) == data
    bench.contents.close()
    bench.upload(b"later")
    bench.write()
    assert bench.entries()[-1].fields["why"]


def test_what_is_over_the_budget_is_marked_in_the_record() -> None:
    bench = Bench(MemoryStore(), contents_bytes=1000)
    bench.upload(bytes(800))
    bench.upload(bytes(801))
    bench.upload(bytes(800))
    bench.upload(bytes(200))
    bench.write()
    bench.recorder.mark(Result(1, "d" * 32, bench.contents.put(bytes(500)) or "", (500,), "uint8"))
    bench.write()
    found = [entry.fields for entry in bench.entries() if entry.kind == "content"]
    assert [bool(one["key"]) for one in found] == [True, False, True, True]
    assert "keeps 1000 B of uploads" in found[1]["why"]
    (result,) = [entry.fields for entry in bench.entries() if entry.kind == "result"]
    assert (result["key"], result["digest"]) == ("", "d" * 32)
    for one in found:
        assert not one["key"] or bench.store.content(one["key"]) is not None
    bench.writer.close()


def test_room_that_trimming_makes_is_room_for_new_contents() -> None:
    bench = Bench(MemoryStore(None), contents_bytes=2500, limit_bytes=8000)
    for seed in range(20):
        bench.upload(bytes([seed]) * 1000)
        bench.send(1, bytes(2000))
        bench.write()
    bench.writer.close()  # it is trimmed behind what is flushed
    keys = [entry.fields["key"] for entry in bench.entries() if entry.kind == "content"]
    assert keys[-1] == key_of(bytes([19]) * 1000)
    assert sum(group.nbytes for group in bench.store.groups()) <= 8000


def test_bytes_that_were_forgotten_are_stored_when_they_come_again() -> None:
    bench = Bench(MemoryStore(), limit_bytes=8000)
    for seed in (*range(20), 0):
        bench.upload(bytes([seed]) * 1000)
        bench.write()
    bench.writer.close()
    (*_, last) = (entry.fields for entry in bench.entries() if entry.kind == "content")
    assert last == {"seq": 21, "key": key_of(bytes(1000)), "why": ""}
    assert bench.store.content(last["key"]) == bytes(1000)


class Trims(MemoryStore):
    """A store that is not done yet when it has forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.trims, self.go_on = threading.Event(), threading.Event()

    def trim(self, keep_bytes: int) -> Trimmed:
        trimmed = super().trim(keep_bytes)
        if trimmed.keys:
            self.trims.set()
            assert self.go_on.wait(30)
        return trimmed


def test_bytes_that_come_again_while_they_are_forgotten_are_stored_again() -> None:
    store = Trims()
    bench = Bench(store, limit_bytes=11_200)
    for seed in range(8):
        bench.upload(bytes([seed]) * 1000)
        bench.record_thread.flush()
        if seed < 7:
            bench.writer.flush()
    assert store.trims.wait(30)
    assert store.content(key_of(bytes(1000))) is None
    bench.upload(bytes(1000))
    bench.record_thread.flush()
    store.go_on.set()
    bench.write()
    bench.writer.close()
    assert store.content(key_of(bytes(1000))) == bytes(1000)


def test_a_store_that_is_away_costs_nobody_anything() -> None:
    gate = Gate()
    bench = Bench(gate)
    bench.send(2)
    bench.write()
    gate.shut = True
    for _ in range(5):
        bench.send(10)
        bench.record_thread.flush()
    with pytest.raises(JournalUnavailable, match="the gate is shut"):
        bench.writer.flush()
    failed = bench.events.wait_for(JournalFailed, since=0)
    assert (failed.store, failed.error) == ("gate", "JournalUnavailable: the gate is shut")
    gate.shut = False
    bench.write()
    resumed = bench.events.wait_for(JournalResumed, since=0)
    assert resumed.dropped == 0
    assert bench.seqs() == list(range(1, 53))
    assert bench.events.history(JournalFailed) == [failed]
    bench.writer.close()


def test_it_is_tried_again_by_itself() -> None:
    gate = Gate()
    gate.shut = True
    bench = Bench(gate)
    bench.send()
    bench.record_thread.flush()
    bench.events.wait_for(JournalFailed, since=0)
    gate.shut = False
    bench.events.wait_for(JournalResumed, since=0)
    assert bench.seqs() == [1]
    bench.writer.close()


def test_gathering_never_waits_for_a_store_that_does_not_answer() -> None:
    gate = Gate()
    gate.open.clear()
    bench = Bench(gate)
    began = time.monotonic()
    for _ in range(100):
        bench.send(10)
        bench.record_thread.flush()
    assert time.monotonic() - began < 5
    assert gate.calls <= 1
    gate.open.set()
    bench.write()
    assert bench.seqs() == list(range(1, 1001))
    bench.writer.close()


def test_what_waits_is_bounded_and_what_is_lost_is_counted() -> None:
    gate = Gate()
    gate.shut = True
    bench = Bench(gate, backlog_bytes=10_000)
    data = bytes(500)
    for turn in range(200):
        bench.send(1, data)
        bench.upload(bytes(10))
        bench.record_thread.flush()
        if turn == 0:  # the writer's thread has its first turn when it likes
            bench.events.wait_for(JournalFailed, 60.0, since=0)
    assert bench.writer._waiting_bytes <= 10_000
    dropped = bench.writer.dropped
    assert dropped > 300
    assert bench.events.history(JournalDropped)
    gate.shut = False
    bench.write()
    resumed = bench.events.wait_for(JournalResumed, 60.0, since=0)
    assert resumed.dropped == dropped
    kept = [entry for entry in bench.entries() if entry.kind != "session"]
    assert len(kept) == 600 - dropped
    assert bench.seqs()[-1] == 400
    positions = [group.position for group in gate.groups()]
    assert positions == sorted(positions)
    assert positions[-1] == 200
    assert bench.store.content(key_of(bytes(10))) == bytes(10)
    bench.writer.close()


def test_closing_commits_what_is_left(tmp_path: Path) -> None:
    bench = Bench(SqliteStore(tmp_path / "x.journal"))
    bench.send(1000)
    bench.record_thread.flush()
    bench.writer.close()
    assert bench.seqs() == list(range(1, 1001))
    assert [path.name for path in tmp_path.iterdir()] == ["x.journal"]


def test_closing_says_what_a_store_that_is_away_has_cost() -> None:
    gate = Gate()
    gate.shut = True
    bench = Bench(gate)
    bench.send(7)
    bench.record_thread.flush()
    bench.events.wait_for(JournalFailed, since=0)
    bench.writer.close()
    (lost,) = bench.events.history(JournalDropped)
    assert lost.entries == 7
    assert not bench.writer._thread or not bench.writer._thread.is_alive()


def test_a_writer_that_wrote_nothing_has_no_thread_and_no_file(tmp_path: Path) -> None:
    bench = Bench(SqliteStore(tmp_path / "x.journal"))
    bench.write()
    bench.writer.close()
    assert list(tmp_path.iterdir()) == []


# Real failures of real stores.


def test_a_full_disk_is_an_event_and_passes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.journal")
    bench = Bench(store)
    bench.send()
    bench.write()
    assert store._writing is not None
    (pages,) = store._writing.execute("PRAGMA page_count").fetchone()
    store._writing.execute(f"PRAGMA max_page_count = {pages + 10}")
    bench.send(100, bytes(4000))
    bench.record_thread.flush()
    failed = bench.events.wait_for(JournalFailed, since=0)
    assert "full" in failed.error
    bench.events.wait_for(JournalResumed, since=0)  # the limit went with the connection
    bench.write()
    assert bench.seqs() == list(range(1, 102))
    bench.writer.close()


def test_a_file_that_is_deleted_is_an_event_and_the_next_one_has_the_facts(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    bench = Bench(SqliteStore(path))
    bench.send(3)
    bench.write()
    for each in tmp_path.iterdir():
        each.unlink()
    bench.send(2)
    bench.record_thread.flush()
    failed = bench.events.wait_for(JournalFailed, since=0)
    assert "deleted" in failed.error
    bench.events.wait_for(JournalResumed, since=0)
    assert [entry.kind for entry in bench.entries()] == ["session", "message", "message"]
    assert bench.seqs() == [4, 5]
    bench.writer.close()


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "x.journal"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (x)")
    db.commit()
    db.close()
    before = path.read_bytes()
    bench = Bench(SqliteStore(path))
    bench.send()
    bench.record_thread.flush()
    failed = bench.events.wait_for(JournalFailed, since=0)
    assert "something else" in failed.error
    bench.writer.close()
    assert path.read_bytes() == before


def _postgres(server: Any) -> Store:
    return SqlStore(server.url)


def _redis(server: Any) -> Store:
    return RedisStore(server.url)


def _url(server: Any) -> Store:
    return open_store(server.url("writer"))


@pytest.mark.parametrize(
    ("make", "open_"),
    [(Postgres, _postgres), (Redis, _redis), (Dynalite, _url), (Mongo, _url)],
)
def test_a_server_that_goes_away_and_comes_back_loses_nothing(
    make: Callable[[], Server], open_: Callable[[Any], Store], request: Any
) -> None:
    name = "mongodb" if make is Mongo else make.__name__.lower()
    request.getfixturevalue(name)  # skips where there is none
    with running(make()) as server:
        bench = Bench(open_(server))
        bench.send(10)
        bench.upload(b"kept" * 1000)
        bench.write()
        server.stop()
        bench.send(10)
        bench.record_thread.flush()
        failed = bench.events.wait_for(JournalFailed, 30, since=0)
        assert str(server.port) in failed.store
        bench.send(10)
        bench.record_thread.flush()
        server.start()
        bench.events.wait_for(JournalResumed, 60, since=0)
        bench.write()
        assert bench.seqs() == list(range(1, 32))
        assert [group.position for group in bench.store.groups()] == [0, 1, 2, 3]
        assert bench.store.content(key_of(b"kept" * 1000)) == b"kept" * 1000
        bench.writer.close()


def test_markers_of_the_record_are_told_from_entries_by_their_second_byte() -> None:
    for seq in (0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63):
        assert encode_entry(seq, 1, None, Put((1,), "uint8", b"x"))[1] < 0xE0
    for marker in (SentBy(None, 1.0), Content(2**40, "k" * 32), ContextBegan(1, 1.0, 2)):
        assert msgspec.msgpack.encode(marker)[1] >= 0xE0


def test_a_store_that_vanished_counts_what_it_held(tmp_path: Path) -> None:
    bench = Bench(SqliteStore(tmp_path / "x.journal"))
    bench.send(3)
    bench.write()
    for each in tmp_path.iterdir():
        each.unlink()
    bench.send(2)
    bench.record_thread.flush()
    resumed = bench.events.wait_for(JournalResumed, 30, since=0)
    assert resumed.dropped == 3
    assert bench.writer.dropped == 3
    assert [lost.entries for lost in bench.events.history(JournalDropped)] == [3]
    bench.send(4)
    bench.write()
    assert bench.writer.dropped == 3
    bench.writer.close()


def test_a_store_that_was_emptied_without_a_word_counts_what_it_held() -> None:
    """As a server that keeps nothing, and was started again between two commits."""
    gate = Gate()
    bench = Bench(gate)
    for _ in range(3):
        bench.send(2)
        bench.write()
    gate.inner = MemoryStore(None)
    bench.send(1)
    bench.write()
    assert bench.writer.dropped == 6
    bench.send(1)
    bench.write()
    assert bench.writer.dropped == 6
    assert bench.seqs() == [7, 8]
    assert [entry.kind for entry in bench.entries()].count("session") == 1, "the facts come again"
    bench.writer.close()


def test_another_journal_in_the_place_of_one_that_was_away_counts_what_that_held() -> None:
    gate = Gate()
    bench = Bench(gate)
    bench.send(2)
    bench.write()
    gate.shut = True
    bench.send(1)
    bench.record_thread.flush()
    bench.events.wait_for(JournalFailed, since=0)
    other = MemoryStore(None)
    for position in range(1, 20):
        other.append([Group(0, "theirs", "cpu0", 1.0, 1, put(position), position, 1)], {})
    gate.inner = other
    gate.shut = False
    assert bench.events.wait_for(JournalResumed, 30, since=0).dropped == 2
    bench.writer.close()


def test_a_store_that_was_away_and_kept_everything_counts_nothing() -> None:
    gate = Gate()
    bench = Bench(gate)
    for _ in range(3):
        bench.send(2)
        bench.write()
        gate.shut = True
        bench.send(1)
        bench.record_thread.flush()
        bench.events.wait_for(JournalFailed, since=0)
        gate.shut = False
        bench.write()
    assert bench.writer.dropped == 0
    bench.writer.close()


class Damaged(Gate):
    """A store in which something is damaged, which is told once."""

    text = "the log of gate is damaged"

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        text, self.text = self.text, ""
        if text:
            raise JournalDamaged(text)
        return super().append(groups, contents)


def test_damage_that_was_found_stays_on_record() -> None:
    bench = Bench(Damaged())
    bench.send(2)
    bench.record_thread.flush()
    bench.events.wait_for(JournalResumed, 30, since=0)
    bench.send(1)
    bench.write()
    journal = Journal(bench.store)
    assert len(journal) == 5
    assert "the log of gate is damaged" in str(journal.damage)
    assert "it is damaged: the log of gate" in repr(journal)
    assert [e.fields["damage"] for e in journal if "damage" in e.fields] == [Damaged.text]
    bench.writer.close()


def test_damage_that_was_read_stays_on_record(tmp_path: Path) -> None:
    """Also once the damaged part has been trimmed away."""
    path = tmp_path / "x.journal"
    bench = Bench(SqliteStore(path))
    journal = Journal(bench.store, bench.writer, bench.record_thread.flush)
    for _ in range(5):
        bench.send(1, bytes(1000))
        bench.write()
    db = sqlite3.connect(path)
    db.execute("UPDATE groups SET data = zeroblob(length(data)) WHERE number = 3")
    db.commit()
    with pytest.raises(JournalDamaged, match="group 3"):
        list(journal)
    bench.send(1)
    bench.write()
    db.execute("DELETE FROM groups WHERE number BETWEEN 2 AND 3")
    db.execute("UPDATE head SET first = 4")
    db.commit()
    db.close()
    for again in (journal, Journal.open(path)):
        assert len(list(again)) > 3
        assert "group 3" in str(again.damage or (len(again) and again.damage))
    bench.writer.close()
