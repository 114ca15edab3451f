"""A map on a device is a dict: no key is lost, whatever is put in and taken out together."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.realtime import (
    CountKeys,
    Erase,
    Find,
    GpuHashMapActor,
    Insert,
    Items,
    hash_map,
)
from accel_lab.errors import ContextLost, InvalidArgument, OutOfMemory


def entries(keys: Any, device: Device) -> dict[int, float]:
    found = keys.ask(Items()).result()
    return dict(zip(found.keys.get().tolist(), found.values.get().tolist(), strict=True))


def is_as(table: Any, device: Device, truth: dict[int, float], asked: Any) -> None:
    values, found = table.ask(Find(device.put(asked))).result()
    assert found.get().tolist() == [key in truth for key in asked.tolist()]
    assert values.get().tolist() == [truth.get(key, 0) for key in asked.tolist()]
    assert table.ask(CountKeys()).result() == len(truth)
    assert entries(table, device) == truth


changes = st.lists(
    st.tuples(
        st.booleans(), st.integers(0, 99), st.integers(0, 300), st.sampled_from((8, 300, 2**62))
    ),
    max_size=8,
)


@settings(max_examples=6)
@given(changes=changes)
def test_it_is_a_dict_through_inserts_erasures_and_growth(
    spawn: Any, device: Device, changes: list[tuple[bool, int, int, int]]
) -> None:
    table = spawn(lambda: GpuHashMapActor(device, capacity=8))
    truth: dict[int, float] = {}
    asked = [np.arange(-10, 310)]
    for erases, seed, n, span in changes:
        rng = np.random.default_rng(seed)
        keys, values = rng.integers(-span, span, n), rng.integers(-1000, 1000, n)
        asked.append(keys)
        before = len(truth)
        if erases:
            for key in keys.tolist():
                truth.pop(key, None)
            assert table.ask(Erase(device.put(keys))).result() == before - len(truth)
        else:
            truth.update(zip(keys.tolist(), values.tolist(), strict=True))
            put = device.put(keys), device.put(values)
            assert table.ask(Insert(*put)).result() == len(truth) - before
    is_as(table, device, truth, np.concatenate(asked))


def test_floats_are_held_and_thousands_of_keys_are_all_found(spawn: Any, device: Device) -> None:
    rng = np.random.default_rng(0)
    keys = rng.permutation(20_000) * 1_000_003
    values = rng.random(20_000)
    table = spawn(lambda: GpuHashMapActor(device, dtype="float64"))
    for part in np.split(np.arange(20_000), 4):
        put = device.put(keys[part]), device.put(values[part])
        assert table.ask(Insert(*put)).result() == 5_000
    got, found = table.ask(Find(device.put(keys))).result()
    assert found.get().all()
    np.testing.assert_array_equal(got.get(), values)


def test_of_equal_keys_the_last_counts(spawn: Any, device: Device) -> None:
    table = spawn(lambda: GpuHashMapActor(device))
    keys = np.zeros(1000, np.int64)
    assert table.ask(Insert(device.put(keys), device.put(np.arange(1000)))).result() == 1
    assert entries(table, device) == {0: 999}
    assert table.ask(Erase(device.put(keys))).result() == 1
    assert entries(table, device) == {}


def test_no_key_is_lost_with_the_context(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_map, "KEEP_EVERY", 8)
    with System(backend, devices=1) as lab:
        (device,) = lab.devices
        table = lab.spawn(lambda: GpuHashMapActor(device, capacity=16))
        truth: dict[int, float] = {}
        for i in range(14):  # over a checkpoint
            keys = np.random.default_rng(i).integers(0, 500, 40)
            truth.update(dict.fromkeys(keys.tolist(), i))
            table.ask(Insert(device.put(keys), device.put(np.full(40, i)))).result()
            if i in {4, 12}:
                with pytest.raises(ContextLost):
                    lab.inject("kill").result()
        is_as(table, device, truth, np.arange(500))
        assert device.generation == 3
        lab.check()


def test_mistakes_are_refused_and_change_nothing(spawn: Any, device: Device) -> None:
    table = spawn(lambda: GpuHashMapActor(device))
    one = device.put(np.array([5]))
    table.ask(Insert(one, one)).result()
    least = device.put(np.array([7, -(2**63)]))
    for message, text in (
        (
            Insert(least, least),
            "keys must be above -9223372036854775807; one is -922337203685477580",
        ),
        (Insert(one, device.put(np.zeros(2, np.int64))), r"values must be .*int64\[1\]"),
        (Insert(device.put(np.zeros(1, np.int32)), one), r"keys must be .*int64\[n\]"),
        (Find(None), "not NoneType"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument, match=text):
            table.ask(message).result()
    assert entries(table, device) == {5: 5}
    assert table.ask(Erase(least)).result() == 0
    with pytest.raises(InvalidArgument, match="one of int32, int64, float32, float64, not 'text'"):
        GpuHashMapActor(device, dtype="text")


def test_a_table_that_cannot_grow_stays_as_it_was(device: Device, monkeypatch: Any) -> None:
    table = GpuHashMapActor(device, capacity=8)
    keys = device.put(np.arange(8))
    table.insert(Insert(keys, keys))
    put = table._put

    def is_full(*args: Any) -> None:
        put(*args)
        raise OutOfMemory("full")

    monkeypatch.setattr(table, "_put", is_full)
    more = device.put(np.arange(100, 200))
    with pytest.raises(OutOfMemory):
        table.insert(Insert(more, more))
    monkeypatch.setattr(table, "_put", put)
    assert table.find(Find(keys)).found.get().all()
    assert table.count(CountKeys()) == 8
    assert table.insert(Insert(more, more)) == 100
    assert table.count(CountKeys()) == 108


def test_what_a_fault_has_not_told_is_counted_once(device: Device, monkeypatch: Any) -> None:
    table = GpuHashMapActor(device, capacity=100)
    count, faults = table._count, [True, True]

    def cut_short() -> None:
        if faults.pop():
            raise ContextLost("gone", generation=1)
        count()

    one, two = (device.put(np.arange(*ends)) for ends in ((0, 5), (5, 8)))
    monkeypatch.setattr(table, "_count", cut_short)
    with pytest.raises(ContextLost):
        table.insert(Insert(one, one))
    monkeypatch.setattr(table, "_count", count)
    assert table.insert(Insert(two, two)) == 3
    monkeypatch.setattr(table, "_count", cut_short)
    with pytest.raises(ContextLost):
        table.erase(Erase(one))
    monkeypatch.setattr(table, "_count", count)
    assert table.count(CountKeys()) == 3


def test_a_table_grows_to_the_largest_there_is(device: Device, monkeypatch: Any) -> None:
    monkeypatch.setattr(hash_map, "MOST_SLOTS", 64)
    table = GpuHashMapActor(device, capacity=8)
    for start, stop in ((0, 8), (8, 20), (20, 32)):
        keys = device.put(np.arange(start, stop))
        assert table.insert(Insert(keys, keys)) == stop - start
    one = device.put(np.array([32]))
    with pytest.raises(InvalidArgument, match="at most 32 keys, not 33"):
        table.insert(Insert(one, one))
    assert table.find(Find(device.put(np.arange(32)))).found.get().all()
