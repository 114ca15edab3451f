"""The journal over a feed: what a reader is told of it, how much, and what it says of the rest."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.errors import AccelError, JournalUnavailable
from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.writing.writer import COMMIT_GROUPS
from accel_lab.views.feed import (
    client,
    feed,
    offered,
)
from accel_lab.views.feed import (
    journal as feed_journal,
)
from accel_lab.views.feed import (
    lines as feed_lines,
)
from accel_lab.views.feed import (
    reader as feed_reader,
)
from accel_lab.views.feed.client import FeedSource, Watch
from accel_lab.views.feed.feed import FEED
from accel_lab.views.feed.journal import Passage, Telling
from accel_lab.views.feed.lines import Speaker, Topic
from accel_lab.views.lab import LabView
from accel_lab.views.past.replayable import Replayable
from accel_lab.views.past.wording import line_of
from accel_lab.views.scene.observer import observer_of
from tests.project import ROOT
from tests.views.feed.processes import eventually
from tests.views.made_up import lab as made_up
from tests.views.test_journal_view import Away

FAREWELL_S = feed.FAREWELL_S
SPEAKER = Speaker(feed=feed_lines.SCHEMA, pid=1, version="9.9", program="train.py", folder="/")
pytestmark = pytest.mark.usefixtures("runtime")


def source_of(watch: Watch) -> FeedSource:
    eventually(watch.sources)
    return watch.sources()[0]


def look_of(source: FeedSource) -> Replayable:
    look = source.replayable()
    assert look is not None
    return look


def work(lab: System, count: int) -> None:
    x = lab.devices[0].put(np.ones((8, 8), np.float32))
    for _ in range(count):
        blas.gemm(x, x).result()
    lab.flush()


def lines(look: Replayable) -> list[str]:
    look.read()
    return [line.what for line in look.past.lines(range(len(look.past.times)))]


def is_told(look: Replayable, lab: System) -> bool:
    """Whether all there is was told, or is counted."""
    look.read()
    return len(look.past.times) + look.past.dropped == len(lab.journal)


# What a reader is told.


@pytest.mark.parametrize("store", ["memory", "journal.db"])
def test_a_reader_has_the_entries_that_the_system_has(
    watch: Watch, tmp_path: Path, store: str
) -> None:
    journal = store if store == "memory" else tmp_path / store
    with System("host", name="train", journal=journal) as lab:
        work(lab, 20)
        source = source_of(watch)
        look = look_of(source)
        eventually(lambda: len(lines(look)) >= 21)
        with pytest.raises(AccelError):
            lab.inject("kill").result()
        lab.ready()
        work(lab, 3)
        said = [line_of(entry).what for entry in lab.journal[2:4]]
        eventually(lambda: is_told(look, lab) and lines(look)[2:4] == said)
        assert (look.past.name, look.past.dropped) == ("train", 0)
        assert len(look.past.faults) == 2, "the request and the loss"
        assert (look.replaying, look.lab) == (False, None)


def test_its_last_entries_come_before_it_is_said_to_have_ended(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with System("host") as lab:
        assert lab._writer is not None
        commit = lab._writer._commit

        def commit_late() -> None:
            if lab._closed:
                eventually(lambda: observer_of(lab).ended)
                time.sleep(0.5)  # a feed that went by that would have said farewell
            commit()

        monkeypatch.setattr(lab._writer, "_commit", commit_late)
        work(lab, 1)
        source = source_of(watch)
        x = lab.devices[0].put(np.ones((8, 8), np.float32))
        for _ in range(50):
            x = blas.scal(x, 1.0)
        lab.close()
        eventually(lambda: source.ended)
    look = look_of(source)
    assert lines(look)[-1].startswith("context of generation 1 ended")
    assert lines(look) == [one.what for one in look.past.lines(range(len(lab.journal)))]


def test_all_views_draw_the_past_and_the_system_goes_on(watch: Watch) -> None:
    with System("host", name="train") as lab:
        work(lab, 5)
        source = source_of(watch)
        view = LabView(look_of(source))
        eventually(lambda: view.parts["journal"].sample()["count"] >= 6)
        view.do_part("journal", {"do": "seek", "position": 2})
        state = view.sample()
        assert state["replay"]["position"] == state["journal"]["position"] == 2
        assert state["tree"]["root"]["name"] == "train"
        before = state["journal"]["count"]
        work(lab, 5)
        eventually(lambda: source._entries > before)
        for _ in range(8):  # each may have more read
            view.sample()
            time.sleep(0.1)
        assert view.sample()["replay"]["count"] == before, "what is looked at does not grow"
        view.do_part("journal", {"do": "live"})
        eventually(lambda: view.sample()["journal"]["count"] > before)
        assert "replay" not in view.sample()


# How much.


def test_who_comes_late_is_told_the_newest_and_how_many_were_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_journal, "TOLD_BYTES", 2000)
    with System("host", name="train") as lab:
        for _ in range(8):
            work(lab, 10)
        watch = Watch()
        look = look_of(source_of(watch))
        eventually(lambda: is_told(look, lab) and lines(look))
        told, gone = lines(look), look.past.dropped
        watch.close()
    assert told[0].startswith("session of train")
    assert 1 < len(told) < 100
    assert gone > 60


def group(number: int, entries: int = 10, session: str = "s") -> Group:
    return Group(0, session, "cpu0", 1.0, entries, bytes(100), number, entries)


def test_what_the_store_forgets_before_it_is_told_is_counted() -> None:
    store = MemoryStore()
    telling = Telling(Journal(store))
    store.append([Group(0, "s", "", 1.0, 1, b"", 0, 1), group(1)], {})
    assert [one.first for one in telling.take()] == [0, 1]
    store.append([group(number) for number in range(2, 40)], {})
    store.keep_within(1000)
    assert store.dropped
    told, why = telling.rest(time.monotonic() + 60)
    assert not why
    assert told[0].first == 1 + 39 * 10 - 10 * len(told)
    assert [one.first for one in told[1:]] == [one.first + 10 for one in told[:-1]]


def test_what_never_came_to_the_store_is_counted() -> None:
    """Its writer may wait for a store that is away with so much only."""
    store = Away(None)
    with System("host", journal=store) as lab:
        telling = Telling(lab.journal)
        told = [*telling.take()]
        assert lab._writer is not None
        lab._writer.backlog_bytes = 1000
        store.away = True
        for _ in range(COMMIT_GROUPS + 10):
            with suppress(JournalUnavailable):
                work(lab, 3)
        store.away = False
        work(lab, 1)
        lab.journal.flush()
        dropped = lab.journal.dropped
        told += telling.rest(time.monotonic() + 60)[0]
    assert dropped > 0
    last = told[-1]
    assert last.first + last.group.entries == dropped + sum(one.group.entries for one in told)


@pytest.mark.parametrize("session", ["s", "t"])
def test_a_journal_that_has_taken_the_place_of_what_was_told_is_told(
    session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the file was deleted: the same session goes on in another, or another begins."""
    monkeypatch.setattr(feed_journal, "EVERY_S", 0.0)
    monkeypatch.setattr(feed_journal, "TOLD_BYTES", 450)
    store = SqliteStore(tmp_path / "journal.db")
    header = Group(0, "s", "", 1.0, 1, b"", 0, 1)
    store.append([header, *map(group, range(1, 10))], {})
    telling = Telling(Journal(store))
    assert [one.group.position for one in told(telling)] == [0, 6, 7, 8, 9]
    store.close()
    for file in tmp_path.glob("journal.db*"):
        file.unlink()
    assert told(telling) == []
    first = 10 if session == "s" else 1
    new = [group(number, session=session) for number in range(first, first + 30)]
    store.append([msgspec.structs.replace(header, session=session), *new[:2]], {})
    found = told(telling)
    store.append(new[2:], {})
    found += told(telling)
    store.close()
    assert [one.group.position for one in found] == [0, *(one.position for one in new)]
    assert [one.first for one in found] == [91, *range(92, 92 + 300, 10)], "none counts as gone"


def told(telling: Telling) -> list[Passage]:
    """Return what a reader is told until there is no more for now."""
    found: list[Passage] = []
    while True:
        found += telling.take()
        assert telling._reading is not None
        telling._reading.join(60)
        if not telling._found:
            return found


def test_a_reader_keeps_so_much_and_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TOLD_BYTES", 1000)
    source = FeedSource("1", SPEAKER, Topic(system=1, name="lab", opened=1.0, journal=True))
    for number in range(100):
        source.read(Passage(group=group(number), first=50 + number * 10))
    assert source._journal.used_bytes <= 1000
    kept = len(list(source._journal.groups()))
    assert source._missed + source._journal.dropped == 50 + (100 - kept) * 10


def test_a_long_journal_leaves_room_for_samples_in_what_is_unread() -> None:
    store = MemoryStore()
    store.append([group(number) for number in range(10_000)], {})
    lab = made_up()
    lab.journal = Journal(store)  # type: ignore[attr-defined]
    shown = offered.Shown(1, lab, 1.0, lambda: None)
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0)
        reader = feed_reader.Reader(one)
        for _ in range(100):  # the other end does not read
            reader.tell_journal(shown)
            reader.send()
        assert 0 < len(reader.unread) < feed_reader.UNREAD_BYTES / 2
        reader.tell_rest(shown, time.monotonic() + 60)
        assert reader.unread.count(b'{"group"') > 9_000, "at the end all the rest"


# When the store is slow.


class SlowStore(SqliteStore):
    """A file that gives nothing to whoever reads until it is let go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gives = threading.Event()
        self.gives.set()

    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield what the file has, in its own time."""
        assert self.gives.wait(120)
        yield from super().groups(after)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowStore]:
    monkeypatch.setattr(feed, "FAREWELL_S", 1.0)
    store = SlowStore(tmp_path / "journal.db")
    yield store
    store.gives.set()


@pytest.mark.parametrize("told", [True, False])
def test_who_reads_of_a_slow_store_learns_at_the_end_that_not_all_was_read(
    watch: Watch,
    store: SlowStore,
    told: bool,  # noqa: FBT001
) -> None:
    if not told:
        store.gives.clear()
    lab = System("host", name="train", journal=store).ready()
    work(lab, 5)
    source = source_of(watch)
    if told:
        look = look_of(source)
        eventually(lambda: len(lines(look)) >= 6)
        store.gives.clear()
        work(lab, 5)
    lab.close()  # waits for its own last commit, and for nobody who reads
    eventually(lambda: source.ended)
    assert not store.gives.is_set()
    assert not source.killed, "it said so itself"
    view = LabView(look if told else look_of(source)).parts["journal"]
    state = view.sample()
    assert (state["count"] > 0) == told
    assert "too late" in state["unread"]
    assert "too late" in view.text(state)


@pytest.mark.parametrize(
    "page", ["how-to/dashboard.md", "decisions/0023-a-feed-is-a-socket-of-its-user.md"]
)
def test_the_docs_say_how_long_closing_may_wait_for_those_who_read(page: str) -> None:
    text = " ".join((ROOT / "docs" / page).read_text().split())
    assert f"losing a system waits at most {2 * FAREWELL_S:g} s" in text


def test_a_slow_store_of_one_system_that_ends_keeps_no_other_from_being_seen(
    watch: Watch, store: SlowStore
) -> None:
    with System("host", name="other") as other:
        lab = System("host", name="train", journal=store).ready()
        work(lab, 5)
        eventually(lambda: len(watch.sources()) == 2)
        ending = next(one for one in watch.sources() if one.name == "train")
        going_on = next(one for one in watch.sources() if one.name == "other")
        store.gives.clear()
        lab.close()
        eventually(lambda: ending.ended)
        before = going_on._entries
        work(other, 5)
        eventually(lambda: going_on._entries > before)
        assert not store.gives.is_set()


def test_a_store_that_is_away_at_the_end_is_named_to_who_reads(tmp_path: Path) -> None:
    class Away(SqliteStore):
        def groups(self, after: int = 0) -> Iterator[Group]:
            raise JournalUnavailable(f"{self.name} is away after {after}")

    found, why = Telling(Journal(Away(tmp_path / "journal.db"))).rest(time.monotonic() + 60)
    assert (found, "is away" in why) == ([], True)


def test_a_reader_with_too_much_unread_learns_at_the_end_that_not_all_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_reader, "HANG_UP_BYTES", 10_000)
    store = MemoryStore()
    store.append([group(number) for number in range(1000)], {})
    lab = made_up()
    lab.journal = Journal(store)  # type: ignore[attr-defined]
    shown = offered.Shown(1, lab, 1.0, lambda: None)
    one, other = socket.socketpair()
    with one, other:
        reader = feed_reader.Reader(one)
        reader.tell_rest(shown, time.monotonic() + 60)
        *_, last = reader.unread.splitlines()
    assert len(reader.unread) < 10_000
    assert msgspec.json.decode(last, type=Topic).unread == feed_reader.SLOW


# Where there is nothing to tell.


def test_a_system_without_a_journal_says_so(watch: Watch) -> None:
    with System("host", journal=None):
        source = source_of(watch)
        assert source.unkept == "it keeps no journal"
        assert source.replayable() is None


def test_a_feed_of_an_earlier_version_is_read_and_says_why_there_is_no_past() -> None:
    speaker = Speaker(feed=1, pid=1, version="0.0.9", program="train.py", folder="/")
    source = FeedSource("1", speaker, Topic(system=1, name="lab", opened=1.0))
    assert "accel_lab 0.0.9" in source.unkept
    assert source.replayable() is None


def test_a_message_of_a_library_that_is_not_here_ends_the_past_by_name() -> None:
    source = FeedSource("1", SPEAKER, Topic(system=1, name="lab", opened=1.0, journal=True))
    look = look_of(source)
    unknown = b"\x95\x01\x00\xc0\x91\xcd\x7f\xff\xc0"  # [1, 0, nil, [32767], nil]
    strange = Group(0, "s", "cpu0", 1.0, 1, unknown, 1, 1)
    source.read(Passage(group=strange, first=0))
    look.read()
    journal = LabView(look).parts["journal"]
    assert "tag 32767, which no library here has" in journal.sample()["unread"]
    assert "what follows cannot be read here: the journal holds" in journal.text(journal.sample())
    assert not look.past.damage


def test_a_made_up_system_has_no_journal(watch: Watch) -> None:
    lab = made_up()
    FEED.add(lab)
    assert source_of(watch).unkept
    FEED.remove(lab)
