"""A journal does not grow without bound, and what is left of it can be read and replayed."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System
from accel_lab.errors import ContextLost, InvalidArgument, JournalError
from accel_lab.journal.journal import Journal
from accel_lab.journal.replay.replay import Replay
from accel_lab.journal.stores.sqlite import SqliteStore
from tests.faults.conftest import settle
from tests.journal.seeded import SLOTS, Run, match, twins
from tests.journal.test_writer import Bench

LIMIT = 1 << 19
ACTIONS, PIECE = 4_000, 100
LOG = 5 << 20
"""How large the log beside the file gets before SQLite puts it into the file, and a little more."""


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", journal=None) as lab:
        yield lab


def on_disk(path: Path) -> int:
    """Return the size of a file in bytes, 0 when there is none."""
    return path.stat().st_size if path.exists() else 0


def test_a_file_stays_within_its_limit_and_replays_from_what_is_left(
    lab: System, tmp_path: Path
) -> None:
    path = tmp_path / "x.journal"
    log = tmp_path / "x.journal-wal"
    run = Run(path, 5, io.StringIO(), journal_bytes=LIMIT)
    with run.lab:
        for _ in range(ACTIONS // PIECE):
            run.send(PIECE)
            run.lab.flush()
            assert on_disk(path) < 2 * LIMIT
            assert on_disk(log) < LOG
        assert settle(lambda: not run.lab.devices[0].in_flight)  # or closing fails what is
        run.lab.flush()  # the last frees may push older entries out
        journal = run.lab.journal
        assert journal.dropped > ACTIONS // 2
        assert settle(lambda: f"{journal.dropped} older ones are gone" in repr(journal))
    assert on_disk(path) < 2 * LIMIT
    journal = Journal.open(path)
    first, *entries = journal
    assert journal.damage is None
    assert first.kind == "session"
    messages = [entry for entry in entries if entry.kind == "message"]
    assert messages[0].seq > ACTIONS // 2
    record = match(messages, 5, ACTIONS)
    assert len(record.ends) == ACTIONS
    closed = next(entry for entry in entries if entry.kind == "context ended")
    replay = Replay(journal, lab, to=closed, progress=False)
    report = replay.run()
    assert report.ok
    for _, why in report.not_run:  # that of the first message in a chain, however long this is
        assert re.fullmatch(
            r"(it depends on buffer \d+: )?"
            "(the journal does not reach back to the message that made it"
            "|its bytes are not in the journal any more)",
            why,
        )
    lost = {entry.seq for entry, _ in report.not_run} | set(range(1, messages[0].seq))
    *_, twin = twins(5, record.ends, lost.__contains__)
    compared = 0
    for value, maker in zip(twin.values, twin.makers, strict=True):
        if np.isnan(value).any():
            continue
        ref = replay.buffer(record.makers[maker])
        assert ref is not None
        np.testing.assert_allclose(ref.device.get(ref).result(), value, rtol=1e-9, atol=1e-12)
        compared += 1
    assert 0 < compared <= SLOTS


def test_a_file_that_is_too_large_shrinks_when_it_is_next_written_to(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    for limit, seed in ((None, 1), (LIMIT, 2)):
        run = Run(path, seed, io.StringIO(), journal_bytes=limit)
        with run.lab:
            run.send(3000 if limit is None else 10)
        if limit is None:
            assert on_disk(path) > 2 * LIMIT
    assert on_disk(path) < 2 * LIMIT
    journal = Journal.open(path)
    sessions = [entry.session for entry in journal if entry.kind == "session"]
    last = [e for e in journal if e.kind == "message" and e.session == sessions[-1]]
    assert len(sessions) == 2
    assert len(match(last, 2, 10).ends) == 10


def test_a_journal_in_memory_keeps_as_much_as_it_may() -> None:
    with System("host", journal_bytes=100_000) as lab:
        for _ in range(50):
            lab.devices[0].put(np.zeros(1000))
            lab.flush()
        assert 5 < len(lab.journal.filter(name="Put")) <= 100_000 // 8000
        assert lab.journal.dropped > 30


def test_uploads_push_no_messages_out() -> None:
    """Of 50 arrays of 1 MiB a journal of 8 MiB has a few, and of their messages all."""
    with System("host", journal_bytes=8 << 20) as lab:
        gpu = lab.devices[0]
        for number in range(50):
            gpu.put(np.full(1 << 17, float(number)))
        lab.flush()
        journal = lab.journal
        assert (journal.dropped, journal.gap) == (0, "")
        assert len(journal.filter(name="Upload")) == 50
        kept = [entry.fields["key"] for entry in journal.filter(kind="content")]
        assert 2 <= sum(journal.content(key) is not None for key in kept) <= 8


def test_an_explanation_says_that_the_loss_may_have_left_the_journal() -> None:
    with System("host", journal_bytes=20_000) as lab:
        gpu = lab.devices[0]
        with pytest.raises(ContextLost):
            lab.inject("kill").result()
        for _ in range(10):
            for _ in range(1000):
                gpu.ping()
            gpu.ping().result()
            lab.flush()
        assert settle(lambda: not lab.journal.filter(kind="context ended"))
        gap = r"\d+ older ones are gone: it keeps 20 KiB, and System\(journal_bytes=…\) more"
        assert re.match(gap, lab.journal.gap)
        text = "the journal has no loss of a context; of the entries, "
        with pytest.raises(JournalError, match=text + gap):
            lab.explain()


def test_what_is_no_limit_is_refused() -> None:
    with pytest.raises(
        InvalidArgument, match="journal_bytes must be positive, a number of bytes, not 0"
    ):
        System("host", journal_bytes=0)


def test_there_is_a_limit_when_none_is_given(tmp_path: Path) -> None:
    with System("host", journal=tmp_path / "x.journal") as lab:
        assert lab._writer is not None
        assert lab._writer.limit_bytes == 1 << 30


@pytest.mark.parametrize("what", ["small messages", "small contents", "large contents"])
def test_what_is_on_disk_is_bounded_whatever_it_is(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    bench = Bench(SqliteStore(path), limit_bytes=LIMIT)
    log = 0
    for turn in range(12 if what == "large contents" else 400):
        for number in range(20):
            if what == "small messages":
                bench.send()
                bench.record_thread.flush()  # a group each
            elif what == "small contents":
                bench.upload(f"{turn} {number}".encode())
        if what == "large contents":
            bench.upload(bytes([turn]) * (6 << 20))
        bench.write()
        assert on_disk(path) < 2 * LIMIT
        log = max(log, on_disk(tmp_path / "x.journal-wal"))
    assert log < LOG
    bench.writer.close()
    assert bench.writer.trimmed > 0 or what == "large contents"
    assert bench.entries()[-1].outcome != "failed"
