"""A user's `__del__`, run in the middle of what a system does beside its messages."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, rng
from accel_lab.actor.actor import Actor
from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.lineage import content_store
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.recovery.recovery import Recovery
from accel_lab.compute.suspension.suspension import Suspension
from accel_lab.compute.wire import link as wire
from accel_lab.errors import InvalidArgument
from accel_lab.journal.stores.memory import MemoryStore
from tests.faults.conftest import settle
from tests.finalized import Finalized, collecting, in_time

WAIT = 30.0


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host") as lab:
        yield lab.ready(WAIT)


def closed(lab: System) -> bool:
    """Close it, and return something."""
    lab.close()
    return True


def flushed(lab: System) -> bool:
    """Flush it, and return something."""
    lab.flush()
    return True


def test_it_closes_the_system_in_the_middle_of_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = System("host").ready(WAIT)
    a = lab.devices[0].put(np.ones(4, np.float32)).result(WAIT)
    collecting(monkeypatch, wire, "batch", lab.close)
    in_time(lambda: [a + a])
    assert settle(lambda: lab.devices[0].state == "stopped")
    in_time(lambda: closed(lab))


def test_it_closes_the_system_that_is_being_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = System("host").ready(WAIT)
    collecting(monkeypatch, lab._background, "report", lab.close)
    in_time(lambda: closed(lab))
    assert lab.devices[0].state == "stopped"


def test_it_spawns_the_first_actor_in_the_middle_of_that(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs: list[Any] = []
    collecting(monkeypatch, EventLoop, "start", lambda: refs.append(lab.spawn(Actor, name="b")))
    refs.append(in_time(lambda: lab.spawn(Actor, name="a")))
    assert {ref.name for ref in refs} == {"a", "b"}


def test_it_draws_other_words_of_the_same_generator(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two draws that follow each other would."""
    expected = rng.Generator(lab.devices[0], 1).words(64).get()
    numbers, drawn = rng.Generator(lab.devices[0], 1), list[Any]()
    collecting(monkeypatch, lab.devices[0], "ask", lambda: drawn.append(numbers.words(32)))
    outer = in_time(lambda: numbers.words(32))
    halves = sorted([outer.get().tolist(), drawn[0].get().tolist()])
    assert halves == sorted([expected[:32].tolist(), expected[32:].tolist()])


def test_it_cannot_flush_what_its_thread_records(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def deed() -> None:
        try:
            lab.flush()
        except InvalidArgument as error:
            told.append(str(error))

    collecting(monkeypatch, Recorder, "drain", deed)
    in_time(lambda: flushed(lab))
    assert settle(lambda: bool(told))
    assert "__del__" in told[0]


def test_it_keeps_contents_in_the_middle_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    contents, keys = Contents(), list[str | None]()
    collecting(monkeypatch, content_store, "_copied", lambda: keys.append(contents.put(b"inner")))
    keys.append(in_time(lambda: contents.put(b"outer")))
    assert [contents.get(key or "") for key in keys] == [b"inner", b"outer"]
    assert contents.used_bytes == len(b"innerouter")


def test_it_reads_a_journal_in_the_middle_of_a_commit() -> None:
    store = MemoryStore()
    found: list[set[int]] = []

    class Bytes(dict[str, bytes]):
        def items(self) -> Any:
            Finalized(lambda: found.append(store.numbers()))
            gc.collect()
            return super().items()

    in_time(lambda: [store.append([], Bytes())])
    assert found == [set()]


def test_it_rouses_the_record_thread_in_the_middle_of_that(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what it sends to another device does."""
    rouse = lab._record_thread.rouse

    def roused() -> bool:
        collecting(monkeypatch, threading.Condition, "notify_all", rouse)
        rouse()
        return True

    in_time(roused)


def waiting(gpu: Device, told: list[str]) -> None:
    """Wait for an answer, and note how that was refused."""
    try:
        gpu.run(abs, -1).result()
    except InvalidArgument as error:
        told.append(str(error))


def test_it_cannot_wait_where_its_thread_brings_the_device_back(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, told = lab.devices[0], list[str]()
    a = gpu.put(np.ones(4, np.float32)).result(WAIT)
    collecting(monkeypatch, Recovery, "_plan", lambda: waiting(gpu, told))
    gpu.replace()
    np.testing.assert_array_equal(in_time(lambda: a.get(timeout_s=WAIT)), 1.0)
    assert "__del__" in told[0]


def test_it_cannot_wait_where_its_thread_suspends_the_device(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, told = lab.devices[0], list[str]()
    a = gpu.put(np.ones(4, np.float32)).result(WAIT)
    collecting(monkeypatch, Suspension, "_suspend", lambda: waiting(gpu, told))
    assert in_time(gpu.suspend).buffers == 1
    np.testing.assert_array_equal(in_time(lambda: a.get(timeout_s=WAIT)), 1.0)
    assert "__del__" in told[0]
