"""Reading the record of a device."""

import re
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import System, array, blas, rng
from accel_lab.compute.lineage.markers import Content, encode_marker
from accel_lab.compute.user_code.call import name_of
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.errors import ContextLost, JournalDamaged, JournalError, UserCodeError
from accel_lab.journal.entries.entry import Entry, entries_of
from tests.journal.recording import Drain, Recording


def group(*parts: bytes, count: int | None = None) -> Drain:
    return Drain(1, "lab", "cpu0", 0.0, len(parts) if count is None else count, b"".join(parts))


def named(entries: list[Entry], name: str) -> Entry:
    (found,) = [entry for entry in entries if entry.name == name]
    return found


def test_a_message_is_read_with_its_fields_operands_and_result() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        a = gpu.put(np.ones((3, 4), np.float32))
        b = array.full(gpu, (4, 2), 2.0, "float32")
        c = blas.gemm(a, b, alpha=0.5)
        c.result()
        entries = list(entries_of(record.read()))
    gemm = named(entries, "Gemm")
    assert (gemm.fields["a"], gemm.fields["b"], gemm.result) == (a.id, b.id, c.id)
    assert gemm.fields["alpha"] == 0.5
    assert gemm.operands == (a.id, b.id)
    assert gemm.spec == ((3, 2), "float32")
    assert gemm.library == "blas"
    assert gemm.outcome == "ok so far"
    assert [entry.number for entry in entries] == list(range(len(entries)))
    assert str(gemm).startswith(f"Gemm(a=#{a.id}, b=#{b.id}, alpha=0.5")


def test_what_became_of_a_message_is_told_by_later_entries() -> None:
    def wrong() -> None:
        raise ValueError

    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        with pytest.raises(UserCodeError):
            gpu.run(wrong).result()
        with pytest.raises(ContextLost):
            lab.inject("trap").result()
        lab.ready()
        gpu.ping().result()
        entries = list(entries_of(record.read()))
    run, inject, ping = (named(entries, name) for name in ("Run", "Inject", "Ping"))
    assert run.outcome.startswith("failed: UserCodeError")
    assert (run.name, run.title) == ("Run", "wrong")
    assert str(run).startswith("wrong(blob=<")
    lost = r"lost with its context: cpu0( of \w+)? lost its context of generation 1"
    assert re.match(lost, inject.outcome)
    assert ping.outcome == "ok so far"
    assert repr(ping) == f"<Entry {ping.number} on cpu0: Ping(), ok so far>"
    assert [entry.failed for entry in (run, inject, ping)] == [True, True, False]
    assert (inject.generation, ping.generation) == (1, 2)
    kinds = [entry.kind for entry in entries]
    assert {"failed", "context ended", "explained", "context began"} <= set(kinds)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (sum, "sum"),
        (partial(partial(max, 1), 2), "max"),
        (lambda: 0, ""),
        (np.add, "add"),
        (System, ""),
        (3, ""),
    ],
)
def test_a_call_has_the_name_of_its_function_unless_that_has_none(function: Any, name: str) -> None:
    assert name_of(function) == name


def test_an_outcome_is_not_known_before_it_is_read() -> None:
    with System("host") as lab:
        record = Recording(lab)
        with pytest.raises(ContextLost):
            lab.inject("exit").result()
        entries = entries_of(record.read())
        inject = next(entries)
        assert inject.outcome == "ok so far"
        list(entries)
        assert inject.outcome.startswith("lost with its context")


def test_what_cannot_be_run_again_is_marked_in_the_record() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        x = rng.uniform(gpu, (4,), seed=1)
        gpu.run(np.negative, x).result()
        gpu.run(np.abs, x, pure=True).result()
        entries = list(entries_of(record.read()))
    impure, pure = (entry for entry in entries if entry.name == "Run")
    assert not impure.replayable
    assert "pure=True" in impure.why
    assert pure.replayable
    assert named(entries, "Uniform").replayable


@pytest.mark.parametrize(("key", "why"), [("", "too large"), ("ab" * 16, "")])
def test_an_upload_is_replayable_when_its_bytes_are_kept(key: str, why: str) -> None:
    upload = encode_entry(3, 0, None, Raw([4, 1, 0, 1, 64, 1 << 20]))
    entry, _ = entries_of([group(upload, encode_marker(Content(3, key, why)))])
    assert entry.name == "Upload"
    assert (entry.content, entry.why) == (key, why)
    assert entry.replayable == bool(key)


class Raw(list[object]):
    """Stands for a message, as the list that it travels as."""


def test_an_upload_whose_bytes_never_reached_the_record_is_not_replayable() -> None:
    (entry,) = entries_of([group(encode_entry(3, 0, None, Raw([4, 1, 0, 1, 64, 1 << 20])))])
    assert entry.why == "its bytes were not recorded"


def test_a_message_of_a_library_that_is_not_here_is_refused_by_its_tag() -> None:
    with pytest.raises(JournalError, match="tag 9999"):
        list(entries_of([group(encode_entry(1, 0, None, Raw([9999, 1])))]))


def test_a_message_with_more_fields_than_are_known_is_refused_by_its_name() -> None:
    with pytest.raises(JournalError, match="Ping with 1 fields"):
        list(entries_of([group(encode_entry(1, 0, None, Raw([8, 1])))]))


def test_a_marker_that_is_not_known_is_refused_by_its_tag() -> None:
    with pytest.raises(JournalError, match="marker with tag -99"):
        list(entries_of([group(msgspec.msgpack.encode([-99, 1]))]))


def test_a_session_of_a_later_schema_is_refused() -> None:
    facts = msgspec.msgpack.encode({"schema": 99, "accel_lab": "7.0"})
    with pytest.raises(JournalError, match=r"schema 99.*7\.0"):
        list(entries_of([Drain(1, "lab", "", 0.0, 1, facts)]))


def test_a_session_has_its_facts() -> None:
    facts = msgspec.msgpack.encode({"schema": 1, "backend": "host"})
    (entry,) = entries_of([Drain(1, "lab", "", 0.0, 1, facts)])
    assert entry.kind == "session"
    assert entry.fields["backend"] == "host"


@pytest.mark.parametrize("cut", [1, 3, 7])
def test_a_group_that_is_cut_short_is_damaged(cut: int) -> None:
    whole = encode_entry(1, 0, None, Raw([8]))
    with pytest.raises(JournalDamaged, match="group 1 of cpu0"):
        list(entries_of([group(whole[:-cut], count=1)]))


def test_a_group_of_other_values_is_damaged() -> None:
    with pytest.raises(JournalDamaged):
        list(entries_of([group(msgspec.msgpack.encode([1, 2]))]))
