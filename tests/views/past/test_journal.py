"""A journal as it grows: what is only counted is as if it had been read, and may be forgotten."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import blas
from accel_lab.compute.lineage import markers
from accel_lab.compute.message.builtin import Free, Put
from accel_lab.compute.message.operation import Operation
from accel_lab.journal.entries.entry import Entry, entries_of
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.stores.store import Store
from accel_lab.libraries.jit.messages import Compile, LaunchKernel
from accel_lab.views.journal_view import JournalView
from accel_lab.views.past import journal
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.past.replayable import Replayable
from accel_lab.views.scene.observer import observer_of
from tests.views.made_up import lab
from tests.views.past.test_facts import Written, encode

PLACE = ("one", "cpu0")
LOOKS_LIKE_A_MARKER = b"\x94\xfc" * 8


class Session(Written):
    """A journal in groups of several parts, as a running system writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.seq = 0
        self.began()

    def write(self, group: Sequence[str]) -> None:
        self.group("cpu0", *(encode(PARTS[what](self)) for what in group))
        if group[-1] == "lose":
            self.generation += 1

    def sends(self, kind: type[Operation[Any]], *values: Any) -> list[Any]:
        self.seq += 1
        tag = kind.__struct_config__.tag
        return [self.seq, self.seq, None, [tag, *values], [[4], "float32"]]

    @property
    def earlier(self) -> int:
        return max(1, self.seq - 2)


PARTS: dict[str, Callable[[Session], Any]] = {
    "put": lambda s: s.sends(Put, [4], "float32", LOOKS_LIKE_A_MARKER),
    "gemm": lambda s: s.sends(blas.Gemm, 1, 1),
    "compile": lambda s: s.sends(Compile, "source", "saxpy", [], {}),
    "launch": lambda s: s.sends(LaunchKernel, s.earlier, [1, 1, 1], [1, 1, 1], [], 0),
    "free": lambda s: [0, 0, None, [Free.__struct_config__.tag, [s.earlier]], None],
    "fail": lambda s: markers.Failed(s.earlier, "OutOfMemory", "no room"),
    "cancel": lambda s: markers.Failed(s.earlier, "Cancelled", "by hand"),
    "result": lambda s: markers.Result(s.earlier, "digest", "", (4,), "float32"),
    "sent by": lambda s: markers.SentBy(3, s.at),
    "lose": lambda s: markers.ContextEnded(s.generation, s.at, [s.earlier, s.seq]),
}
MARKERS = {"fail", "cancel", "result", "lose"}
MANY = ["gemm"] * 40
GROUPS = st.lists(
    st.one_of(
        st.just(MANY),
        st.lists(st.sampled_from(["put", "gemm", "free"]), min_size=1, max_size=9),
        st.lists(st.sampled_from([one for one in PARTS if one != "lose"]), min_size=1, max_size=9),
        st.just(["gemm", "lose"]),
    ),
    max_size=12,
)


def seen(past: JournalPast) -> dict[str, Any]:
    """Return all that can be asked of it."""
    count = len(past)
    return {
        "times": list(past.times),
        "faults": list(past.faults),
        "turns": list(past.turns),
        "lines": past.lines(range(count)),
        "alone": [past.lines(range(at, at + 1)) for at in range(count)],
        "in flight": [past.in_flight(PLACE, at) for at in range(count + 1)],
    }


def entries_in(session: Session, groups: Sequence[Sequence[str]]) -> None:
    for group in groups:
        session.write(group)
        # As the gatherer counts: who sends is no entry. A table does not keep what is plain.
        groups_there, last = session.store._groups, session.store._last
        entries = len(group) - list(group).count("sent by")
        plain = MARKERS.isdisjoint(group) and last % 2 == 0
        found = msgspec.structs.replace(groups_there[last], entries=entries, plain=plain)
        groups_there[last] = found


@settings(max_examples=60)
@given(groups=GROUPS, reads=st.sets(st.integers(0, 12)))
def test_what_is_only_counted_is_as_if_it_had_been_read(
    groups: list[list[str]], reads: set[int]
) -> None:
    session = Session()
    own = JournalPast(session.store, own=True)
    for number, group in enumerate(groups):
        entries_in(session, [group])
        if number in reads:
            own.read()
    own.read()
    assert seen(own) == seen(session.past)


def written(groups: list[list[str]]) -> tuple[Session, JournalPast]:
    """Write these groups; return the session, and a past of its own that has read them."""
    session = Session()
    own = JournalPast(session.store, own=True)
    entries_in(session, groups)
    own.read()
    return session, own


@settings(max_examples=60)
@given(groups=GROUPS, keep=st.integers(0, 2000), later=GROUPS)
def test_what_the_store_forgot_is_gone_here_too(
    groups: list[list[str]], keep: int, later: list[list[str]]
) -> None:
    session, own = written(groups)
    before = own.lines(range(len(own)))
    gone = session.store.trim(keep).entries
    own.forget()
    assert (own.dropped, own.forgotten) == (gone, gone)
    rest = [*before[:1], *before[1 + gone :]] if gone < len(before) else []
    assert own.lines(range(len(own))) == rest
    entries_in(session, later)
    own.read()
    fresh = JournalPast(session.store)
    assert len(own) == len(fresh)
    assert list(own.faults) == list(fresh.faults)
    assert list(own.turns) == list(fresh.turns)
    for mine, other in zip(own.lines(range(len(own))), fresh.lines(range(len(own))), strict=True):
        assert (mine.at, mine.device, mine.mark) == (other.at, other.device, other.mark)


@settings(max_examples=60)
@given(groups=GROUPS, keep=st.integers(0, 2000), named=st.integers(0, 30))
def test_what_is_named_by_its_number_stays_when_the_store_forgot_it(
    groups: list[list[str]], keep: int, named: int
) -> None:
    session, own = written(groups)
    before = own.lines(range(len(own)))
    own.keep(named)
    session.store.trim(keep)
    own.forget()
    assert own.lines(range(min(named, len(own)))) == before[:named]
    assert len(own) + own.forgotten == len(before)


@pytest.fixture
def filed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Session, Store]]:
    """Write to a file what is more than a past holds."""
    monkeypatch.setattr(journal, "HELD_BYTES", 1000)
    session = Session()
    entries_in(session, [MANY, ["put"], MANY, ["gemm", "fail"], MANY, ["put", "gemm"]])
    store = SqliteStore(tmp_path / "journal.db")
    store.append(list(session.store.groups()), {})
    yield session, store
    store.close()


def test_of_a_file_no_more_is_held_than_there_is_room_for(
    filed: tuple[Session, Store],
) -> None:
    session, store = filed
    own = JournalPast(store, own=True)
    held = sum(len(group.data) for group in own._groups)
    assert held < 2000 < sum(group.nbytes for group in session.store.groups())
    assert seen(own) == seen(session.past)


def test_what_is_not_held_and_gone_from_its_file_is_counted_and_the_rest_is_shown(
    filed: tuple[Session, Store],
) -> None:
    session, store = filed
    view = JournalView(Replayable(JournalPast(store, own=True)))
    past = view.source.past
    trimmed = store.trim(1000).entries
    count = len(past.times)
    for position in (0, 3, count - 1):
        view.do_seek(position)
        view.source.look()
    lines = past.lines(range(count))
    gone = [number for number in range(count) if lines[number].what == "no longer in the journal"]
    assert 0 < past.dropped == len(gone) <= trimmed
    assert f"{len(gone)} entries are gone" in view.text(view.sample())
    whole, kept = session.past.lines(range(count)), sorted({*range(count)}.difference(gone))
    assert [lines[number] for number in kept] == [whole[number] for number in kept]


@pytest.mark.parametrize("before", [3, 8, 12])
def test_what_a_store_that_lost_everything_was_told_again_is_read(
    before: int, tmp_path: Path
) -> None:
    """As when a server that keeps nothing was away: its session begins anew, and goes on."""
    session = Session()
    entries_in(session, [["put", "gemm"]] * 12)
    header, *groups = session.store.groups()
    store = SqliteStore(tmp_path / "journal.db")
    store.append([header, *groups[:before]], {})
    own = JournalPast(store, own=True)
    store.close()
    for file in tmp_path.iterdir():
        file.unlink()
    own.read()
    store.append([header, groups[before]], {})
    own.read()
    store.append(groups[before + 1 :], {})
    own.read()
    known = session.past.lines(range(len(session.past)))
    lines = own.lines(range(len(own)))
    beyond = lines.index(known[0], 1)
    assert [*lines[:beyond], *lines[beyond + 1 :]] == known
    mine, whole = own.player.look().memory["cpu0"], session.past.player.look().memory["cpu0"]
    assert (mine.blocks, mine.generation) == (whole.blocks, whole.generation)
    store.close()


def test_groups_of_messages_are_not_decoded_until_somebody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session()
    own = JournalPast(session.store, own=True)
    entries_in(session, [MANY] * 20)
    decoded: list[object] = []

    def decode(groups: list[Group], first: int) -> Iterator[Entry]:
        decoded.append(groups)
        return entries_of(groups, first)

    monkeypatch.setattr(journal, "entries_of", decode)
    own.read()
    assert len(own) == 2 + 20 * len(MANY)
    assert len(decoded) <= 1, "the number 260 looks as a Compile does"
    decoded.clear()
    assert [line.what for line in own.lines(range(len(own) - 3, len(own)))] == [
        f"#{number} = Gemm(#1, #1)" for number in range(798, 801)
    ]
    assert decoded == []


def test_what_is_looked_back_at_stays_and_later_looks_begin_anew() -> None:
    session = Session()
    own = JournalPast(session.store, own=True)
    source = Replayable(own, observer_of(lab(devices=1)))
    view = JournalView(source)
    entries_in(session, [["put", "gemm", "free"]] * 30)
    source._read_once()
    count = view.sample()["count"]
    view.do_seek(20)
    source.look()
    session.store.trim(2500)
    source._read_once()
    assert view.sample()["count"] == count, "somebody looks at it"
    view.do_live()
    source._read_once()
    fresh = JournalPast(session.store)
    left = view.sample()["count"]
    assert 20 < left == len(fresh) < count
    view.do_seek(left - 3)
    fresh.player.seek(left - 3)
    mine, other = source.look(), fresh.player.look()
    assert mine.memory["cpu0"].blocks == other.memory["cpu0"].blocks
    assert [fact for _, fact in mine.facts] == [fact for _, fact in other.facts]
