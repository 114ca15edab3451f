"""The scrubber's Python half: where it is, what it says, and what other views show meanwhile."""

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from accel_lab import AccelRef, blas, views
from accel_lab.compute.events.lifecycle import BuffersRebuilt, RequestFailed
from accel_lab.compute.lineage.markers import Failed
from accel_lab.errors import AccelError, InvalidArgument, JournalUnavailable
from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.writing.writer import COMMIT_GROUPS
from accel_lab.system import System
from accel_lab.views import HealthView, Recording, TimelineView, TreeView, journal_view
from accel_lab.views.journal_view import BINS, ROWS, JournalView
from accel_lab.views.past.differences import Differences, compare
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.past.replayable import Replayable, replayable_of
from accel_lab.views.scene import names as names_
from accel_lab.views.widget import commands
from accel_lab.views.widget.view import State
from tests.views.made_up import lab as made_up
from tests.views.past.test_facts import Written, run
from tests.views.test_tree import Table

KEPT: list[AccelRef] = []
"""The buffers of the system: one that is let go of is one entry more, some time later."""


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """A system with some work, a lost context, and more work."""
    system = System("host", name="lab")
    device = system.devices[0]
    x = device.put(np.ones((4, 4), np.float32))
    KEPT.append(x)
    KEPT.extend(device.ask(blas.Gemm(x, x)).result() for _ in range(12))
    with pytest.raises(AccelError):
        system.inject("kill").result()
    system.ready()
    system.events.wait_for(BuffersRebuilt, 20, since=0)  # it is in the journal by then
    KEPT.append(device.put(np.ones((2, 2), np.float32)))
    system.flush()
    yield system
    system.close()
    KEPT.clear()


@pytest.fixture
def view(system: System) -> JournalView:
    view = views.journal(system)
    view.do_live()
    return view


def long(entries: int = 200) -> Written:
    written = Written()
    written.began()
    for number in range(1, entries - 1):
        written.put(number, number)
    return written


def over(written: Written) -> JournalView:
    return JournalView(Replayable(written.past))


def test_live_it_follows_the_end(view: JournalView, system: System) -> None:
    state = view.sample()
    assert state["live"] is True
    assert view.player is None
    assert view.source.lab is system
    assert state["position"] == state["count"] == len(system.journal)
    assert state["window"][-1]["n"] == state["count"] - 1
    before = state["count"]
    KEPT.append(system.devices[0].put(np.ones(3, np.float32)))
    system.flush()
    assert view.sample()["count"] > before


def test_what_runs_is_said_to_run_while_it_is_live(system: System, view: JournalView) -> None:
    """Whether or not it began before anybody looked."""

    def row() -> State:
        return next(one for one in view.sample()["window"] if one.get("seq") == seq)

    busy = system.devices[0].run(time.sleep, 60)
    seq = system.devices[0].last_number
    system.flush()
    end = time.monotonic() + 20
    while "running" not in row():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert row()["outcome"] == "running"
    assert "▶ running" in view.text(view.sample())
    view.do_seek(view.sample()["count"])
    assert "running" not in row(), "in the past it is not known"
    view.do_live()
    busy.cancel()
    with pytest.raises(AccelError):
        busy.result()
    while "running" in row():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_losses_are_counted_apart_from_what_they_failed(view: JournalView) -> None:
    state = view.sample()
    assert (state["faults"], state["losses"]) == (2, 1)


def test_a_command_leaves_live_and_live_comes_back(view: JournalView, system: System) -> None:
    commands.obey(view, do="seek", position=2)
    state = view.sample()
    assert (state["live"], state["position"]) == (False, 2)
    assert view.player is not None
    assert view.source.lab is None
    commands.obey(view, do="live")
    assert view.sample()["live"] is True
    assert view.source.lab is system


def test_the_other_views_of_the_page_show_the_past_with_it(
    view: JournalView, system: System
) -> None:
    tree = TreeView(view.source)
    assert tree.sample()["root"]["children"][0]["generation"] == 2
    view.do_seek(3)
    state = tree.sample()
    root = state["root"]
    assert root["children"][0]["generation"] == 1
    assert "restarts" not in root["children"][0]
    where = view.sample()
    assert state["replay"] == {name: where[name] for name in ("kind", "position", "count", "at")}
    assert views.tree(cast("Any", view)).source is view.source
    note = f"REPLAY: entry 3 of {where['count']} · "
    assert str(tree).startswith(note)
    assert "\nlab: 1 device; not recorded: mailbox, in flight\n" in str(tree)
    assert tree._repr_mimebundle_()[0]["text/html"].startswith(f"<p><strong>{note}")
    view.do_live()
    assert "replay" not in tree.sample()
    assert str(tree).startswith("lab: 1 device\n")
    view.do_live()
    assert tree.sample()["root"]["children"][0]["generation"] == 2
    assert replayable_of(system) is view.source


def test_before_the_first_entry_the_timeline_is_where_the_replay_is(view: JournalView) -> None:
    view.do_seek(0)
    state = TimelineView(view.source).sample()
    assert (state["name"], state["devices"]) == ("", [])
    assert state["at"] == state["replay"]["at"] > 0


def test_a_journal_says_that_it_has_no_readings_and_no_times() -> None:
    view = over(long())
    health, timeline, tree = (kind(view.source) for kind in (HealthView, TimelineView, TreeView))
    for position in (0, 3):
        view.do_seek(position)
        assert "health, not recorded: a journal has no readings" in health.text(health.sample())
        said = timeline.text(timeline.sample())
        assert ": work is not recorded: a journal has no times of work\n" in said
        assert said.endswith("Cells are not recorded: a journal does not say when cells ran")
    assert "; not recorded: mailbox, in flight" in tree.text(tree.sample())
    assert tree.text(tree.sample()).count(" –") == 2 * 4  # noqa: RUF001


def test_from_live_the_next_fault_is_the_last(view: JournalView) -> None:
    view.do_next_fault()
    state = view.sample()
    faults = view.source.past.faults
    assert state["position"] == faults[-1] + 1
    row = next(row for row in state["window"] if row["n"] == state["position"] - 1)
    assert row["mark"] == "fault"
    view.do_seek(0)
    view.do_next_fault()
    assert view.sample()["position"] == faults[0] + 1


def test_steps_plays_and_pauses(view: JournalView) -> None:
    view.do_step(-2)
    count = view.sample()["count"]
    assert view.sample()["position"] == count - 2
    view = over(long())  # it lasts for minutes
    view.do_speed(0.25)
    assert view.sample()["speed"] == 0.25
    assert "playing" not in view.sample()
    view.do_seek(0)
    view.do_play()
    assert view.sample()["playing"] is True
    view.do_speed(4)
    assert view.sample()["speed"] == 4
    assert view.sample()["playing"] is True
    view.do_pause()
    assert "playing" not in view.sample()


def test_two_threads_move_the_views_one_after_the_other(
    view: JournalView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the store might forget, once it is live, what the other goes to."""
    player, told = view.source.player, list[str]()

    def go_live() -> None:
        view.do_live()
        told.append("live")

    other = threading.Thread(target=go_live)
    play = player.play

    def play_slowly(speed: float | None = None) -> None:
        other.start()
        other.join(0.2)
        play(speed)
        told.append("plays")

    monkeypatch.setattr(player, "play", play_slowly)
    view.do_play()
    other.join(60)
    assert told == ["plays", "live"]
    assert not view.source.replaying


def test_a_moment_is_sought_by_its_time() -> None:
    view = over(long())
    times = view.source.past.times
    view.do_seek(at=times[7])
    assert view.sample()["position"] == 8


def test_the_window_is_around_the_position_and_within_the_past() -> None:
    view = over(long(200))
    for position, first in ((0, 0), (4, 0), (100, 92), (200, 185)):
        view.do_seek(position)
        numbers = [row["n"] for row in view.sample()["window"]]
        assert numbers == list(range(first, first + ROWS))
    short = over(long(5))
    assert len(short.sample()["window"]) == 5


def test_the_strip_counts_every_entry_once_and_places_the_marks() -> None:
    written = long(100)
    written.lost()
    written.began()
    strip = over(written).sample()["strip"]
    assert len(strip["bins"]) == BINS
    assert sum(strip["bins"]) == 103
    assert all(0 <= place < BINS for name in ("faults", "turns") for place in strip[name])
    assert strip["faults"] <= strip["turns"]


def test_entries_of_one_moment_are_all_in_the_strip() -> None:
    written = Written()
    assert sum(over(written).sample()["strip"]["bins"]) == 1


def test_a_state_is_small_and_plain() -> None:
    written = long(3000)
    for number in range(200):
        written.lost(number, cause="x" * 500)
        written.began()
    size = len(json.dumps(over(written).sample(), separators=(",", ":")))
    assert size < 16 * 1024


def test_an_empty_journal_says_so() -> None:
    view = JournalView(Replayable(JournalPast(MemoryStore())))
    assert view.sample()["count"] == 0
    assert str(view) == "journal of memory: nothing yet"
    assert "<tbody></tbody>" in view.html(view.sample())
    view.do_play()
    view.do_next_fault()
    assert view.sample()["position"] == 0


def test_text_and_table_show_where_it_is() -> None:
    written = long(20)
    written.mark(Failed(3, "OutOfMemory", "<no> room"))
    view = over(written)
    view.do_seek(21)
    text = str(view)
    assert text.startswith("journal of lab: REPLAY, 21 of 21 entries, ")
    (here,) = [line for line in text.splitlines() if line.startswith("▸ ")]
    assert "✕ Put #3 failed" in here
    assert "        OutOfMemory: <no> room" in text.splitlines()
    assert max(map(len, text.splitlines())) <= 80
    table = Table(view.html(view.sample()))
    assert table.rows[0][0].startswith("journal of lab: REPLAY")
    assert table.rows[1] == ["Entry", "Time", "Device", "Cell", "What", "Outcome"]
    assert table.rows[-1][-1] == "OutOfMemory: <no> room"
    assert view.html(view.sample()).count('aria-current="true"') == 1


def test_entries_speak_of_variables_and_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, Any] = {}
    monkeypatch.setattr(names_, "notebook", lambda: space)
    monkeypatch.setattr(names_, "EVERY_S", 0.0)
    with System("host", name="named") as lab:
        gpu = lab.devices[0]
        space["a"] = gpu.put(np.ones((4, 4), np.float32))
        space["c"] = gpu.ask(blas.Gemm(space["a"], space["a"], trans_b="t"))
        space["parts"] = gpu.run(lambda x: (x + 1, x - 1), space["a"], writes=()).result()
        scaled = gpu.run(np.multiply, space["parts"][0], 2, writes=())
        scaled.result()
        lab.flush()
        view = views.journal(lab)
        rows = view.sample()["window"]
        said = [row["what"] for row in rows if "seq" in row]
        assert said == [
            "a = put(float32[4, 4])",
            "c = Gemm(a, a, trans_b=t)",
            f"#{space['c'].id + 1} = Run(a)",
            f"#{scaled.id} = multiply(parts[0])",
        ]
        assert any(row["what"] == "message 3 made parts[0], parts[1]" for row in rows)
        drawn = [str(view), *(row["what"] for row in rows)]
        assert not any(re.search(r"\d{10}", text) for text in drawn), "no number is that long"
        details = dict(map(tuple, next(row for row in rows if row["what"] == said[1])["detail"]))
        assert details["kind"] == "message, Gemm"
        assert details["request"] == "#2"
        assert details["makes"] == f"float32[4, 4], buffer {space['c'].id} ({space['c'].id})"
        assert details["as recorded"].startswith("Gemm(a=#1, b=#1, alpha=1.0")
        del space["c"]
        assert f"#{details['makes'].split()[-2]} = Gemm(a, a" in str(views.journal(lab))


def test_a_journal_of_another_time_has_numbers_where_names_were(tmp_path: Path) -> None:
    written = long(5)
    written.message(9, blas.Gemm, 9, 1, 1)
    assert over(written).sample()["window"][-1]["what"] == "#9 = Gemm(#1, #1)"


def test_a_line_says_its_cell() -> None:
    written = long(5)
    written.message(9, blas.Gemm, 9, 1, 1)
    *_, last = written.store.groups()
    sent = msgspec.structs.replace(last, number=0, position=last.position + 1, cell=4)
    written.store.append([sent], {})
    view = over(written)
    assert view.sample()["window"][-1]["cell"] == 4
    line = [line for line in str(view).splitlines() if "Gemm" in line][-1]
    assert "cell 4" in line


def test_what_is_gone_or_damaged_is_said() -> None:
    written = long(5)
    written.group("cpu0", b"\xc1")
    view = JournalView(Replayable(JournalPast(written.store, dropped=7)))
    assert view.sample()["dropped"] == 7
    assert "7 entries are gone" in str(view)
    assert "it is damaged: group" in str(view)


def test_a_journal_is_opened_by_whatever_names_it(system: System, tmp_path: Path) -> None:
    lines = tmp_path / "session.jsonl"
    system.journal.to_jsonl(lines)
    count = len(system.journal)
    for past in (system.journal, lines, str(lines), Journal.from_jsonl(lines)):
        view = views.journal(past)
        state = view.sample()
        assert (state["count"], "live" in state) == (count, False)
        assert view.player is not None
        assert view.source.lab is None
        assert views.tree(view.source).sample()["root"]["name"] == "lab"


def test_a_journal_on_disk_is_opened_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "session.db"
    with System("host", name="disk", journal=path) as system:
        kept = system.devices[0].put(np.ones(3, np.float32))
        system.flush()
        count = len(system.journal)
        assert views.journal(path).sample()["count"] == count
        assert kept.is_valid
    with pytest.raises(JournalUnavailable, match="there is no journal"):
        views.journal(tmp_path / "absent.db")


def test_a_recording_is_opened_by_its_path_and_shares_its_player(tmp_path: Path) -> None:
    source = made_up(devices=1)
    with views.record(source, tmp_path / "a.jsonl"):
        source.events.publish(RequestFailed(device="gpu0", message="G", error="no", cell=None))
    recording = Recording.open(tmp_path / "a.jsonl")
    view = views.journal(recording)
    assert view.sample()["kind"] == "recording"
    assert view.player is recording.player
    view.do_seek(0)
    assert views.tree(recording).sample()["root"] is None
    assert views.journal(tmp_path / "a.jsonl").sample()["count"] == len(recording)
    with pytest.raises(InvalidArgument, match="journals can be compared"):
        views.journal(recording, compare=recording.path)


def test_a_lab_without_a_journal_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="lab has no journal"):
        views.journal(made_up())


def test_two_runs_are_compared() -> None:
    here, there = Journal(run().store), Journal(run(other="result").store)
    view = views.journal(here, compare=there)
    compared: State = view.sample()["compared"]
    assert (compared["messages"], compared["undigested"]) == (1, 1)
    (found,) = compared["found"]
    assert (found["device"], found["why"], found["here"]) == ("cpu0", "another result", 3)
    assert found["at"] == view.source.past.times[3]
    assert "entry 3 on cpu0: another result: digest same: Gemm(" in str(view)
    same = views.journal(here, compare=Journal(run().store))
    assert "3 messages are as in lab (2 without a digest of both results)" in str(same)


def test_a_difference_stays_the_entry_it_was_when_older_ones_are_forgotten() -> None:
    with System("host", name="lab", journal_bytes=24 << 10) as lab:
        device = lab.devices[0]
        kept = [device.put(np.ones(4)) for _ in range(5)]
        lab.flush()
        view = views.journal(lab, compare=Journal(run().store))
        past = view.source.past
        assert isinstance(past, JournalPast)
        (found,) = view.sample()["compared"]["found"]
        (line,) = past.lines(range(found["here"], found["here"] + 1))
        for _ in range(20):
            kept += [device.put(np.ones(4)) for _ in range(50)]
            lab.flush()
            view.source._read_once()
        replayable_of(lab)._read_once()
        assert past.forgotten > 0
        assert len(past) < 1000
        assert view.sample()["compared"]["found"] == [found]
        assert past.lines(range(found["here"], found["here"] + 1)) == [line]
        view.do_seek(found["here"])
        assert view.sample()["compared"]["found"] == [found]


def test_the_other_run_may_forget_while_it_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with System("host", name="lab", journal_bytes=8 << 10) as lab:
        kept = [lab.devices[0].put(np.ones(4)) for _ in range(50)]
        lab.flush()
        source = replayable_of(lab)

        def compare_meanwhile(past: JournalPast, other: JournalPast) -> Differences:
            there = other.lines(range(len(other)))
            for _ in range(10):
                kept.extend(lab.devices[0].put(np.ones(4)) for _ in range(50))
                lab.flush()
                source._read_once()
            assert isinstance(source.past, JournalPast)
            assert source.past.forgotten > 0
            assert other.lines(range(len(other))) == there
            return compare(past, other)

        monkeypatch.setattr(journal_view, "compare", compare_meanwhile)
        view = views.journal(Journal(run().store), compare=lab)
        assert view.sample()["compared"]["with"] == "lab"


class Away(MemoryStore):
    """A store that takes nothing for a while."""

    away = False

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        if self.away:
            raise JournalUnavailable("it is away")
        return super().append(groups, contents)


def test_entries_that_never_came_to_the_store_are_told() -> None:
    store = Away(None)
    with System("host", name="lab", journal=store) as lab:
        view = views.journal(lab)
        assert "dropped" not in view.sample()
        store.away = True
        assert lab._writer is not None
        lab._writer.backlog_bytes = 1000
        kept: list[AccelRef] = []
        for _ in range(COMMIT_GROUPS + 10):
            kept += [lab.devices[0].put(np.ones(30)) for _ in range(9)]
            with contextlib.suppress(JournalUnavailable):
                lab.journal.flush()
        store.away = False
        lab.journal.flush()
        dropped = lab.journal.dropped
        assert view.sample()["dropped"] == dropped > 0
        assert f"{dropped} entries are gone" in str(view)


def test_a_live_journal_is_read_beside_the_views(view: JournalView, system: System) -> None:
    KEPT.append(system.devices[0].put(np.ones(3, np.float32)))
    system.flush()
    source = view.source
    told: list[int] = []
    end = source.on_news(lambda: told.append(len(source.past.times)))
    before = len(source.past.times)
    source._read_at -= 10.0
    with source.lock:
        view.fold(source.look())
    assert source._reading is not None
    source._reading.join(10.0)
    end()
    assert told[-1] > before
    with source.lock:
        assert view.fold(source.look())["count"] == told[-1]


def test_the_past_of_a_closed_system_can_still_be_seen() -> None:
    with System("host", name="short") as system:
        view = views.journal(system)
        system.devices[0].put(np.ones(3, np.float32))
    state = view.sample()
    assert (state["closed"], state["live"]) == (True, True)
    assert state["window"][-1]["what"].startswith("context of generation 1 ended, ")
    view.do_seek(3)
    tree = TreeView(view.source).sample()
    assert tree["closed"] is False
    assert tree["root"]["children"][0]["state"] == "running"
    assert not view.source.ended
