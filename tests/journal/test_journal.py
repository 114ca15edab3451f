"""Reading a journal: the whole, a part, some kind, as a table; what is gone or damaged is told."""

import contextlib
import json
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System, array, blas, jit, views
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.lineage.content_store import key_of
from accel_lab.compute.lineage.markers import Failed, encode_marker
from accel_lab.display.table import WIDTH
from accel_lab.errors import (
    AccelError,
    InvalidArgument,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
)
from accel_lab.journal.entries import jsonl
from accel_lab.journal.entries.index import Index
from accel_lab.journal.entries.lines import COLUMNS
from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.open_store import open_store
from accel_lab.views.past.journal import JournalPast
from tests.conftest import require
from tests.held import NOTHING, held
from tests.journal.journaled import journaled
from tests.journal.samples import header, unnumbered


def program(lab: System) -> None:
    """Send a little of everything: a failure, a large upload, user code, frees."""
    device = lab.devices[0]
    a = device.put(np.arange(12.0).reshape(3, 4))
    b = device.put(np.random.default_rng(1).normal(size=(4, 100_000)))
    c = blas.gemm(a, b, alpha=-0.5)
    del b
    d = blas.scal(c, 2.0)
    failing = device.ask(Inject("library"))
    with pytest.raises(AccelError):
        failing.result()
    device.run(lambda x: x + np.nan, d).result()
    d.result()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of two sessions."""
    path = tmp_path_factory.mktemp("journal") / "two.journal"
    for _ in range(2):
        with journaled(path, devices=2) as (lab, journal):
            program(lab)
            assert len(journal) > 5
            lab.devices[1].put(np.zeros(3)).result()
    return path


def test_what_was_just_sent_can_be_read() -> None:
    with journaled() as (lab, journal):
        lab.ready()  # or that would come in between
        x = lab.devices[0].put(np.ones(4))
        assert journal[-1].name == "Put"
        before = len(journal) - 1
        y = blas.scal(x, 2.0)
        assert len(journal) == before + 2
        assert journal[-2].name == "Put"
        assert [entry.number for entry in journal] == list(range(before + 2))
        assert y.result() is y


def test_an_index_and_a_slice_say_what_a_list_says(path: Path) -> None:
    journal = Journal.open(path)
    every = list(journal)
    texts = [str(entry) for entry in every]
    assert len(journal) == len(every) > 20
    assert [str(entry) for entry in journal[:]] == texts
    for index in (0, 5, len(every) - 1, -1, -len(every)):
        assert str(journal[index]) == texts[index]
        assert journal[index].number == every[index].number
    for cut in (slice(-5, None), slice(3, 9), slice(None, None, 4), slice(9, 3, -2), slice(99, 1)):
        assert [str(entry) for entry in journal[cut]] == texts[cut]
        assert [entry.generation for entry in journal[cut]] == [e.generation for e in every[cut]]
        assert [entry.outcome for entry in journal[cut]] == [e.outcome for e in every[cut]]
    with pytest.raises(IndexError, match=f"{len(every)}"):
        journal[len(every)]


def test_an_index_that_is_none_is_refused_as_by_a_list(path: Path) -> None:
    with pytest.raises(TypeError):
        Journal.open(path)["last"]  # type: ignore[call-overload]


def test_sessions_are_one_journal(path: Path) -> None:
    journal = Journal.open(path)
    assert len({entry.session for entry in journal}) == 2
    assert len(journal.filter(kind="session")) == 2


def test_filters_are_what_they_say(path: Path) -> None:
    journal = Journal.open(path)
    every = list(journal)
    assert [e.number for e in journal.filter(name="Gemm")] == [
        e.number for e in every if e.name == "Gemm"
    ]
    assert len(journal.filter(name="Gemm")) == 2
    assert {e.name for e in journal.filter(library="blas")} == {"Gemm", "Scal"}
    assert {e.device for e in journal.filter(device="cpu1")} == {"cpu1"}
    assert journal.filter(device="nothing")._repr_html_()
    with pytest.raises(InvalidArgument, match="message"):
        journal.filter(kind="mesage")  # type: ignore[arg-type]
    (one, two) = journal.filter(failed=True)
    assert one.name == two.name == "Inject"
    assert "LibraryError" in one.outcome
    middle = every[len(every) // 2].at
    early, late = journal.filter(before=middle), journal.filter(after=middle)
    assert len(early) + len(late) == len(every)
    assert all(e.at < middle for e in early)
    assert [e.name for e in journal.filter(library="blas", failed=True)] == []
    assert [e.number for e in journal[:].filter(name="Gemm")] == [
        e.number for e in journal.filter(name="Gemm")
    ]


def test_uploads_are_found_by_their_key(path: Path) -> None:
    journal = Journal.open(path)
    data = np.random.default_rng(1).normal(size=(4, 100_000)).tobytes()
    keys = {entry.content for entry in journal.filter(name="Upload")}
    assert key_of(data) in keys or len(keys) > 1
    assert b"".join(journal.content(key) or b"" for key in sorted(keys))
    assert journal.content("0" * 32) is None


def test_a_journal_in_text(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    text = repr(Journal.open(path))
    lines = text.splitlines()
    assert "two.journal" in lines[0]
    assert all(column in lines[1] for column in ("device", "what"))
    assert sum(line[0].isdigit() for line in lines[2:]) == 10
    assert max(map(len, lines[1:])) <= WIDTH
    assert "Inject" in repr(Journal.open(path)[:])


def test_a_journal_as_a_table(path: Path) -> None:
    journal = Journal.open(path)
    html = journal[:]._repr_html_()
    assert html.count("<tr>") == len(journal) + 1
    for column in COLUMNS:
        assert f'<th scope="col">{column}</th>' in html
    assert "<strong>failed: LibraryError" in html
    assert "Gemm(a=#1, b=#2" in html
    assert "style" not in html
    assert html.count("<caption>") == 1


def test_text_of_messages_is_escaped() -> None:
    with journaled() as (lab, journal):
        reply = lab.devices[0].run(_raise)
        with pytest.raises(AccelError):
            reply.result()
        html = journal._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def _raise() -> None:
    raise ValueError("<b>bold</b>")


def test_a_table_shows_the_last_of_many() -> None:
    with journaled() as (lab, journal):
        x = lab.devices[0].put(np.ones(4))
        for _ in range(500):
            blas.scal(x, 1.0)
        html = journal[:]._repr_html_()
        assert html.count("<tr>") == 201
        assert "the last 200 of" in html
        assert len(repr(journal[:]).splitlines()) < 70


def test_what_was_forgotten_is_told() -> None:
    with journaled(limit_bytes=20_000) as (lab, journal):
        x = lab.devices[0].put(np.ones(4))
        kept = []
        for _ in range(20):
            kept += [blas.scal(x, 1.0) for _ in range(100)]
            journal.flush()
        assert journal._writer is not None
        journal._writer.close()  # it trims behind what is flushed
        left = len(journal)
        assert journal.dropped > 500
        assert journal.dropped + left > 2000
        assert journal.gap == (
            f"{journal.dropped} older ones are gone: it keeps 20 KiB, and System(journal_bytes=…) "
            "more; System(journal='FILE') keeps 1 GiB in a file"
        )
        assert f"; {journal.gap}" in repr(journal)
        assert [str(e) for e in journal[-5:]] == [str(e) for e in list(journal)[-5:]]
        assert next(iter(journal)).kind == "session"


def test_an_index_follows_appending_and_trimming() -> None:
    store = MemoryStore(None)
    index = Index(store)
    index.refresh()
    assert index.total == 0
    for position in range(1, 101):
        entries = position % 3
        data = msgspec.msgpack.encode([0]) * 100
        store.append([Group(0, "s", "cpu0", 1.0, 2, data, position, entries)], {})
        if position % 10 == 0:
            store.trim(3000)
        index.refresh()
        assert index.total == sum(group.entries for group in store.groups())
        groups = list(store.groups())
        before = 0
        for group in groups:
            for number in range(before, before + group.entries):
                assert index.place(number) == (group.number - 1, before)
            before += group.entries


def test_a_journal_that_took_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "again.journal"
    journal = Journal(open_store(path))
    data = encode_marker(Failed(1, "OutOfMemory", "no room"))
    for session, begin, count in (("first", 0, 9), ("second", 0, 5), ("second", 5, 3)):
        for file in tmp_path.iterdir():
            file.unlink()
        store = open_store(path)
        store.append([header(session)], {})
        for position in range(begin + 1, begin + count):
            store.append([Group(0, session, "cpu0", 1.0, 1, data, position, 1)], {})
        store.close()
        assert len(journal) == len(list(journal)) == count, session
        assert [entry.session for entry in journal[-2:]] == [session] * 2
        assert journal[-1].session == session


def test_a_damaged_journal_is_read_up_to_the_damage(path: Path, tmp_path: Path) -> None:
    every = [str(entry) for entry in Journal.open(path)]
    broken = tmp_path / "broken.journal"
    broken.write_bytes(path.read_bytes())
    db = sqlite3.connect(broken)
    (number,) = db.execute("SELECT max(number) FROM groups WHERE session != ''").fetchone()
    db.execute("UPDATE groups SET data = zeroblob(length(data)) WHERE number = ?", (number - 1,))
    db.commit()
    db.close()
    journal = Journal.open(broken)
    found: list[str] = []
    with pytest.raises(JournalDamaged, match=f"group {number - 1}"):
        found.extend(map(str, journal))
    assert 0 < len(found) < len(every)
    assert found == every[: len(found)]
    assert len(journal) == len(found)
    assert [str(entry) for entry in journal[:]] == found
    assert "it is damaged" in repr(journal)
    assert journal.damage is not None
    assert len(journal.filter(name="Gemm")) in (1, 2)
    with pytest.raises(JournalDamaged):
        journal.to_jsonl(tmp_path / "x.jsonl")
    again = Journal.from_jsonl(tmp_path / "x.jsonl")
    assert [str(entry) for entry in again[:]] == found
    assert "damaged" in repr(again)


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable, match="there is no journal"):
        Journal.open(tmp_path / "x.journal")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidArgument):
        Journal.open("")
    with pytest.raises(InvalidArgument, match="a path, a URL or a Store, not of type int"):
        Journal.open(3)  # type: ignore[arg-type]
    (tmp_path / "other.db").write_bytes(b"")
    assert Journal.open(tmp_path / "other.db")[:]._repr_html_()


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    before = held()
    for path in (tmp_path / ("x" * 300), "x" * 5000, f"{'x' * 300}/journal"):
        with pytest.raises(JournalUnavailable, match="File name too long"):
            Journal.open(path)
        with pytest.raises(JournalUnavailable, match="File name too long"):
            views.journal(path)
        with pytest.raises(InvalidArgument, match="File name too long"):
            System("host", journal=path)
    assert before.more() == NOTHING


def test_a_journal_is_read_while_another_process_would_write_it(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    with journaled(path) as (lab, journal):
        lab.ready()
        kept = [lab.devices[0].put(np.ones(4))]
        journal.flush()
        other = Journal.open(path)
        assert [str(e) for e in other] == [str(e) for e in journal]
        kept.append(lab.devices[0].put(np.ones(5)))
        journal.flush()
        assert len(other) == len(journal) == 3 + len(other.filter(kind="context began"))
        assert other.own_sessions == ()
        assert len(journal.own_sessions) == 1


def test_a_journal_can_be_read_after_its_system_was_closed(tmp_path: Path) -> None:
    with journaled(tmp_path / "x.journal") as (lab, journal):
        lab.devices[0].put(np.ones(4)).result()
    assert journal.filter(name="Put")


# JSON lines.


def test_json_lines_bring_everything_back(path: Path, tmp_path: Path) -> None:
    journal = Journal.open(path)
    count = journal.to_jsonl(tmp_path / "x.jsonl")
    again = Journal.from_jsonl(str(tmp_path / "x.jsonl"))
    assert unnumbered(again.store.groups()) == unnumbered(journal.store.groups())
    assert count == len(list(journal.store.groups()))
    for group in journal.store.groups():
        for key in group.keys:
            assert again.content(key) == journal.content(key)
    assert [str(e) for e in again] == [str(e) for e in journal]
    assert [p.name for p in tmp_path.iterdir()] == ["x.jsonl"]


def test_json_lines_are_readable(path: Path, tmp_path: Path) -> None:
    Journal.open(path).to_jsonl(tmp_path / "x.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert lines[0] == {"journal": "accel_lab", "schema": 1}
    assert lines[2]["facts"]["backend"] == "host"
    (gemm, _) = [line for line in lines if line.get("message") == "Gemm"]
    assert gemm["library"] == "blas"
    assert gemm["fields"]["a"] == 1
    assert gemm["fields"]["alpha"] == [-0.5, 0.0] or gemm["fields"]["alpha"] == -0.5
    assert gemm["spec"] == [[3, 100_000], "float64"]
    assert lines[-1]["end"]["groups"] == sum("group" in line for line in lines)


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.999])
def test_json_lines_that_were_cut_off_are_read_up_to_there(
    keep: float, path: Path, tmp_path: Path
) -> None:
    whole = Journal.open(path)
    whole.to_jsonl(tmp_path / "x.jsonl")
    raw = (tmp_path / "x.jsonl").read_bytes()
    (tmp_path / "x.jsonl").write_bytes(raw[: int(len(raw) * keep)])
    journal = Journal.from_jsonl(tmp_path / "x.jsonl")
    assert journal.damage is not None
    found = unnumbered(group for group, _ in _read(tmp_path / "x.jsonl"))
    assert found == unnumbered(whole.store.groups())[: len(found)]
    with pytest.raises(JournalDamaged):
        list(journal)


def test_json_lines_that_lack_only_lines_are_known_as_cut_off(path: Path, tmp_path: Path) -> None:
    Journal.open(path).to_jsonl(tmp_path / "x.jsonl")
    lines = (tmp_path / "x.jsonl").read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines)):
        (tmp_path / "y.jsonl").write_bytes(b"".join(lines[:count]))
        assert Journal.from_jsonl(tmp_path / "y.jsonl").damage is not None


def _read(path: Path) -> list[tuple[Group, dict[str, bytes]]]:
    found = []
    try:
        for one in jsonl.read_lines(path):
            found.append(one)  # noqa: PERF402 - what came before the error counts
    except JournalDamaged:
        pass
    return found


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"journal": "accel_lab", "schema": 2}\n', "schema 2"),
        ('{"some": "thing"}\n', "is not a journal in JSON lines"),
        ("", "is not a journal in JSON lines"),
    ],
)
def test_json_lines_of_something_else_are_refused_by_name(
    text: str, match: str, tmp_path: Path
) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(JournalError, match=match):
        Journal.from_jsonl(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (r'"seq": \d+', '"seq": []'),
        (r'"result": \d+', '"result": "x"'),
        (r'"seq": \d+', f'"seq": {1 << 70}'),
        (r'"marker": -\d+', '"marker": null'),
        (r'"device": ""', '"device": "cpu0"'),
        (r'"device": "cpu0"', '"device": ""'),
        (r'"fields": \{', '"fields": {"more": {}, '),
        (r'"spec": \[\[\d+', '"spec": [[null'),
        (r'"group": \{', '"group": [], "other": {'),
        (r'"at": [\d.]+', '"at": 1e400'),
        (r'"at": [\d.]+', '"at": NaN'),
        (r'^\{"seq"', "[" * 200_000),
    ],
)
def test_json_lines_that_were_changed_are_damaged_from_there(
    was: str, now: str, path: Path, tmp_path: Path
) -> None:
    Journal.open(path).to_jsonl(tmp_path / "x.jsonl")
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    changed = next(at for at, line in enumerate(lines) if re.search(was, line))
    lines[changed] = re.sub(was, now, lines[changed], count=1)
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    journal = Journal.from_jsonl(tmp_path / "x.jsonl")
    with pytest.raises(JournalDamaged):
        list(journal)
    with contextlib.suppress(JournalDamaged):  # what does not decode can be written
        journal.to_jsonl(tmp_path / "y.jsonl")
    assert "it is damaged" in repr(journal.filter())


def test_json_lines_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    for read in (Journal.from_jsonl, Journal.open):
        with pytest.raises(JournalUnavailable, match="nothing") as caught:
            read(tmp_path / "nothing.jsonl")
        assert caught.value.remedy.startswith("Give the path of a journal that is there")
    with pytest.raises(JournalUnavailable, match="no folder"):
        Journal(MemoryStore()).to_jsonl(tmp_path / "no folder" / "x.jsonl")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(codec="utf-8"))
    | st.binary(max_size=50),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
messages = st.tuples(
    st.integers(0, 2**40),
    st.integers(-(2**40), 2**40),
    st.none() | st.floats(0, 1e9),
    st.lists(values, max_size=6).flatmap(
        lambda fields: st.sampled_from([2, 1, 140, 99_999]).map(lambda tag: [tag, *fields])
    ),
    values,
)
marks = st.lists(values, max_size=5).flatmap(
    lambda fields: st.sampled_from([-1, -4, -5, -30]).map(lambda tag: [tag, *fields])
)


@settings(max_examples=60)
@given(parts=st.lists(messages | marks, max_size=6))
def test_any_part_survives_json_lines(
    parts: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = b"".join(msgspec.msgpack.encode(part) for part in parts)
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    group = Group(1, "s", "cpu0", time.time(), len(parts), data, 1, len(parts))
    jsonl.write_lines([group], lambda _: None, path)
    ((found, contents),) = list(jsonl.read_lines(path))
    assert found == group
    assert contents == {}


def test_a_journal_in_a_folder_that_is_not_there_is_refused_at_the_call(tmp_path: Path) -> None:
    """And nothing has been started by then."""
    before = held()
    with pytest.raises(InvalidArgument, match="no folder"):
        System("host", journal=tmp_path / "mistyped" / "journal.sqlite")
    assert before.more() == NOTHING


def test_a_launch_is_called_by_its_kernel_wherever_that_was_compiled(tmp_path: Path) -> None:
    require("compiler")
    source = "__global__ void fill(float* x, float v) { x[threadIdx.x] = v; }"
    file = tmp_path / "k.journal"
    with journaled(str(file)) as (lab, journal):
        gpu = lab.devices[0]
        kernel = jit.compile(gpu, source, "fill").result()
        x = array.zeros(gpu, (4,), "float32")
        journal.flush()
        kernel(1, 4, (x, 1.0)).result()
        journal.flush()
        position = next(i for i, e in enumerate(journal) if e.name == "LaunchKernel")
        launch = journal[position]
        assert launch.title == "fill"
        assert str(launch).startswith("fill(kernel=#1, grid=[1, 1, 1], ")
        assert journal.filter(name="LaunchKernel")[0].title == "fill"
        assert "fill(kernel=#1" in repr(journal[position:])
        past = JournalPast(open_store(str(file)))
        (line,) = past.lines(range(position, position + 1))
    assert line.what == "fill(#2, 1.0, grid=[1, 1, 1], block=[4, 1, 1])"
