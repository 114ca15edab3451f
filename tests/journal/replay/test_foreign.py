"""Journals that somebody else made: what they may have this process do."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import msgspec
import numpy as np
import pytest

from accel_lab import System, rng
from accel_lab.compute.lineage.content_store import key_of
from accel_lab.compute.lineage.markers import Content, encode_marker
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import (
    Allocate,
    CopyIn,
    Location,
    Put,
    RestoreThing,
    Run,
    SaveThing,
    TakeBack,
    Unmap,
    Upload,
    Withhold,
)
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.errors import JournalError
from accel_lab.journal.journal import Journal
from accel_lab.journal.replay.replay import replay
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.libraries.collective.messages import AllReduce, Join, Leave
from tests.journal.journaled import journaled
from tests.journal.samples import header

MARK = "a file that code of others would make"


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", journal=None) as lab:
        yield lab


def group(parts: list[bytes], session: str = "s", position: int = 1) -> Group:
    return Group(0, session, "cpu0", 1.0, len(parts), b"".join(parts), position, len(parts))


def crafted(*parts: bytes, contents: dict[str, bytes] | None = None) -> Journal:
    store = MemoryStore()
    store.append([header("s"), group(list(parts))], contents or {})
    return Journal(store)


def put(seq: int) -> bytes:
    message = Put((4,), "float32", np.ones(4, np.float32).tobytes())
    return encode_entry(seq, seq, None, message, message.infer())


INTERNAL = [
    TakeBack(1, [1]),
    TakeBack(1, [1], uploaded=True),
    RestoreThing("rng", "Generator", Location(0, 0, 64)),
    CopyIn((4,), "float32", b"h" * 64, 0),
    Unmap(b"h" * 64),
    Join(1, "key"),
    Leave(1),
]


@pytest.mark.parametrize("message", INTERNAL, ids=lambda message: type(message).__name__)
def test_what_no_user_sends_is_not_sent_again(message: Operation[Any], lab: System) -> None:
    (cpu,) = lab.devices
    mine = [cpu.put(np.full(4, float(i))) for i in range(3)]
    report = replay(crafted(put(1), encode_entry(2, 2, None, message)), lab, progress=False)
    assert (report.run, len(report.not_run)) == (1, 1)
    assert not report.failed
    for i, ref in enumerate(mine):
        np.testing.assert_array_equal(cpu.get(ref).result(), np.full(4, float(i)))


@pytest.mark.parametrize(
    ("make", "result"),
    [(lambda x: Withhold((x,)), 0), (SaveThing, 2), (lambda x: AllReduce(1, x), 2)],
    ids=["Withhold", "SaveThing", "AllReduce"],
)
def test_what_no_user_sends_of_its_buffers_is_not_sent_again(
    make: Callable[[AccelRef], Operation[Any]], result: int, lab: System
) -> None:
    (cpu,) = lab.devices
    record = cpu.put(np.ones(4))
    part = encode_entry(2, result, None, make(record))
    journal = crafted(put(record.id), part)
    report = replay(journal, lab, progress=False)
    assert (report.run, len(report.not_run), report.failed) == (1, 1, [])


@pytest.mark.parametrize("offset", [-4, 12, 1 << 40])
def test_bytes_go_nowhere_but_into_the_buffer_that_they_are_for(offset: int, lab: System) -> None:
    (cpu,) = lab.devices
    out = cpu.put(np.ones(4, np.float32))
    allocate = Allocate((4,), "float32")
    data = bytes(16)
    journal = crafted(
        encode_entry(1, out.id, None, allocate, allocate.infer()),
        encode_entry(2, out.id, None, Upload(out, offset, 0, 0, 16)),
        encode_marker(Content(2, key_of(data))),
        contents={key_of(data): data},
    )
    with pytest.raises(JournalError, match=f"16 bytes at {offset} of a buffer of 16"):
        replay(journal, lab, progress=False)


def code(folder: Path) -> Run:
    """Return a call that leaves a file behind."""
    blob = cloudpickle.dumps((lambda path: Path(path).touch(), (str(folder / MARK),), {}))
    return Run((), blob, pure=True)


def test_code_under_this_processs_own_name_needs_leave_if_another_wrote_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.journal"
    with journaled(path) as (lab, journal):
        gpu = lab.devices[0]
        gpu.run(np.negative, rng.uniform(gpu, (4,), seed=1), pure=True).result()
        journal.flush()
        assert journal.replay(lab, progress=False).ok
        (session,) = journal.own_sessions
        other = SqliteStore(path)
        other.append([group([encode_entry(900, 0, None, code(tmp_path))], session, 10_000)], {})
        other.close()
        with pytest.raises(JournalError, match="allow_code=True"):
            journal.replay(lab, progress=False)
        assert journal.own_sessions == ()
    assert not (tmp_path / MARK).exists()


def test_code_that_was_changed_in_the_store_needs_leave(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    with journaled(path) as (lab, journal):
        gpu = lab.devices[0]
        gpu.run(np.negative, rng.uniform(gpu, (4,), seed=1), pure=True).result()
        journal.flush()
        found = [one for one in journal.store.groups() if one.device]
        db = sqlite3.connect(path)
        for one in found:
            data = one.data.replace(b"negative", b"absolute")
            changed = msgspec.structs.replace(one, data=data)
            values = (changed.data, changed.checksum, one.number)
            db.execute("UPDATE groups SET data = ?, checksum = ? WHERE number = ?", values)
        db.commit()
        db.close()
        with pytest.raises(JournalError, match="allow_code=True"):
            journal.replay(lab, progress=False)
