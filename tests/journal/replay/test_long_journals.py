"""A journal that is too long to be held is read again while it is replayed."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import System, array, blas
from accel_lab.errors import ContextLost, JournalError
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.journal import Journal
from accel_lab.journal.replay import part
from accel_lab.journal.replay.part import outlasting
from accel_lab.journal.replay.replay import Replay, replay
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore

MESSAGES, FREED_EVERY = 150_000, 500
HELD_MB = 120


def session(lab: System) -> None:
    """Make, change, lose and make again, with results that are compared."""
    gpu = lab.devices[0]
    x = gpu.put(np.arange(16.0).reshape(4, 4))
    total = blas.gemm(x, x)
    for _ in range(30):
        total = array.exp(array.tanh(total))
    gpu.get(total).result()
    with pytest.raises(ContextLost):
        lab.inject("kill").result()
    blas.axpy(x, total, alpha=2.0)
    gpu.get(total).result()


def test_it_is_replayed_as_one_that_is_held(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.journal"
    with System("host", 1, journal=path, results="values", recover="replay") as lab:
        session(lab)
    journal = Journal.open(path)
    with System("host", 1, journal=None) as lab:
        held = replay(journal, lab, progress=False)
        part_held = replay(journal, lab, from_=-6, progress=False)
        monkeypatch.setattr(part, "HELD", 0)
        again = replay(journal, lab, progress=False)
        part_again = replay(journal, lab, from_=journal[-6], progress=False)
        steps = list(Replay(journal, lab))
    assert held.ok
    assert held.equal > 60
    assert (part_held.run, part_held.before) == (part_again.run, part_again.before)
    for field_ in ("run", "had_failed", "skipped", "equal", "within", "uncompared", "not_run"):
        assert getattr(again, field_) == getattr(held, field_), field_
    assert sum(one.comparison is not None for one in steps) == held.equal


class Forgetful:
    """A journal that trims its oldest group behind each reading."""

    own_sessions = ("lab",)

    def __init__(self, journal: Journal) -> None:
        self._entries = list(journal)

    def __iter__(self) -> Iterator[Entry]:
        yield from self._entries
        first = self._entries[0].group
        self._entries = [one for one in self._entries if one.group > first]

    def content(self, key: str) -> bytes | None:
        return dict[str, bytes]().get(key)


def test_what_it_has_forgotten_meanwhile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "HELD", 0)
    with System("host", 1) as lab:
        array.exp(lab.devices[0].put(np.ones(4))).result()
        lab.journal.flush()
        array.exp(lab.devices[0].put(np.ones(4))).result()
        with pytest.raises(JournalError, match="the journal forgot entries before 1 while"):
            replay(Forgetful(lab.journal), lab)


@dataclass
class Made:
    """An entry, as far as losses need one."""

    number: int
    kind: str
    operands: tuple[int, ...] = ()
    makes: dict[int, None] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    session: str = "s"
    device: str = "cpu0"


IDS = st.lists(st.integers(1, 6), max_size=3)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("message"), IDS, IDS),
            st.tuples(st.just("context ended"), IDS, IDS),
            st.tuples(st.just("rebuilt"), IDS, IDS),
            st.tuples(st.just("arrays"), IDS, IDS),
        ),
        max_size=25,
    ),
    st.lists(st.sampled_from(["cpu0", "cpu1"]), min_size=25, max_size=25),
)
def test_what_outlasts_a_loss_is_what_is_named_behind_it(
    drawn: list[tuple[str, list[int], list[int]]], devices: list[str]
) -> None:
    entries = []
    for number, (kind, named, made) in enumerate(drawn):
        operands = tuple(named) if kind == "message" else ()
        makes = dict.fromkeys(made) if kind == "message" else {}
        fields = {"buffers": named, "ids": made}
        entries.append(Made(number, kind, operands, makes, fields, device=devices[number]))
    found = outlasting(entries)  # type: ignore[arg-type]
    for loss in entries:
        if loss.kind != "context ended":
            continue
        here = [one for one in entries if one.device == loss.device]
        before = {
            id_
            for one in here[: here.index(loss)]
            for id_ in (
                *(one.fields["buffers"] if one.kind == "rebuilt" else one.operands),
                *(one.fields["ids"] if one.kind == "arrays" else one.makes),
            )
        }
        behind = {
            id_
            for one in here[here.index(loss) + 1 :]
            for id_ in (one.fields["buffers"] if one.kind == "rebuilt" else one.operands)
        }
        assert found[loss.number] & before == behind & before


def many(count: int) -> Journal:
    """Return a journal of so many messages, made of one and of one that frees."""
    store = MemoryStore(limit_bytes=None)
    with System("host", 1, journal=store, fuse=False) as lab:
        gpu = lab.devices[0]
        x = gpu.put(np.ones(4))
        y = array.exp(x)
        gpu.get(y).result()
        del y
        gpu.get(x).result()
        entries = list(lab.journal)
    (first,) = [one for one in entries if one.name == "Unary"]
    (free,) = [one for one in entries if one.kind == "free"]
    last = max(entries, key=lambda one: one.number)
    encode: Callable[[Any], bytes] = msgspec.msgpack.encode
    at = 1 + max(group.position for group in store.groups())
    seq, id_ = last.seq + 1, first.result + 1_000_000
    groups = []
    for begin in range(0, count, FREED_EVERY):
        ids = list(range(id_ + begin, id_ + begin + FREED_EVERY))
        parts = []
        for made in ids:
            parts.append(encode([seq, made, *first.raw[2:]]))
            seq += 1
        parts.append(encode([seq, 0, free.raw[2], [free.raw[3][0], ids], *free.raw[4:]]))
        seq += 1
        groups.append(
            Group(0, first.session, "cpu0", 0.0, len(parts), b"".join(parts), at, len(parts))
        )
        at += 1
    store.append(groups, {})
    return Journal(store)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_long_replay_keeps_memory_flat() -> None:
    """Held, so many entries would take 250 MB."""

    def resident_mb() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

    journal = many(MESSAGES)
    with System("host", 1, journal=None) as lab:
        again = Replay(journal, lab, progress=False)
        before = most = resident_mb()
        ended = threading.Event()

        def watch() -> None:
            nonlocal most
            while not ended.wait(0.1):
                most = max(most, resident_mb())

        watching = threading.Thread(target=watch)
        watching.start()
        report = again.run()
        ended.set()
        watching.join()
    assert report.ok
    assert report.run == MESSAGES + 2
    assert most - before < HELD_MB
    buffers = again._repeater.buffers(journal[-1])
    assert len(buffers.known) < 20 * FREED_EVERY
    assert len(buffers._touched) < 20 * FREED_EVERY
