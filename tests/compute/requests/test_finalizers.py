"""A user's `__del__` that sends, run in the middle of what is being sent."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, blas
from accel_lab.actor import reply
from accel_lab.compute.lineage.recorded_message import decode
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.requests import answers, connection, outbox
from accel_lab.compute.wire import link as wire
from accel_lab.errors import InvalidArgument
from tests.faults.conftest import settle
from tests.finalized import Finalized, collecting, in_time

WAIT = 30.0
SMALL, LARGE = np.ones((4, 4), np.float32), np.ones((256, 256), np.float32)


@pytest.fixture
def gpu() -> Iterator[Device]:
    with System("host") as lab:
        yield lab.ready(WAIT).devices[0]


PLACES = [(outbox, "encode_entry"), (wire, "batch")]
"""What is called with the device's lock, and with that of its wire."""


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[1])
@pytest.mark.parametrize("array", [SMALL, LARGE], ids=["small", "large"])
def test_it_puts_and_computes(
    gpu: Device, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str], array: Any
) -> None:
    """Its messages follow the one that was being sent, and their handles work as any."""
    a = gpu.put(SMALL).result(WAIT)
    made: list[AccelRef] = []
    numbers, send_entry = list[int](), wire.Link.send

    def noted(link: wire.Link, data: bytes, *, idle: bool) -> bool:
        numbers.append(decode(data)[0])
        return send_entry(link, data, idle=idle)

    monkeypatch.setattr(wire.Link, "send", noted)

    def deed() -> None:
        x = gpu.put(array)
        made.append(x)
        made.append(blas.gemm(x, x))

    def send() -> Any:
        for _ in range(200):
            c = a @ a
        return c.get(timeout_s=WAIT)

    collecting(monkeypatch, *place, deed)
    np.testing.assert_array_equal(in_time(send), 4 * SMALL)
    x, product = made
    n = float(len(array))
    np.testing.assert_array_equal(in_time(lambda: (product + x).get(timeout_s=WAIT)), n + array)
    assert settle(lambda: gpu.in_flight == 0)
    assert numbers == sorted(numbers)


def test_what_is_sent_next_comes_after_it(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nobody has come to send it by then."""
    a = gpu.put(SMALL).result(WAIT)
    monkeypatch.setattr(gpu._requests.outbox, "_call_later", lambda _: None)
    made: list[AccelRef] = []
    collecting(monkeypatch, *PLACES[0], lambda: made.append(gpu.put(2 * SMALL)))
    in_time(lambda: a @ a)
    np.testing.assert_array_equal(in_time(lambda: (made[0] + a).get(timeout_s=WAIT)), 3 * SMALL)


def test_it_is_sent_though_nobody_sends_any_more(
    gpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = gpu.put(SMALL).result(WAIT)
    made: list[AccelRef] = []
    collecting(monkeypatch, *PLACES[0], lambda: made.append(gpu.put(2 * SMALL)))
    in_time(lambda: a @ a)
    assert settle(lambda: made[0].done)


def test_it_cannot_wait_there(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for itself; so it is told."""
    a, told = gpu.put(SMALL).result(WAIT), list[InvalidArgument]()

    def deed() -> None:
        try:
            gpu.run(abs, -1).result(WAIT)
        except InvalidArgument as error:
            told.append(error)

    collecting(monkeypatch, *PLACES[0], deed)
    np.testing.assert_array_equal(in_time(lambda: (a @ a).get(timeout_s=WAIT)), 4 * SMALL)
    assert "__del__" in str(told[0])


WAITS: list[tuple[str, Callable[[Device], Any]]] = [
    ("result", lambda gpu: gpu.run(abs, -1).result()),
    ("get", lambda gpu: gpu.put(SMALL).get()),
]
READING = [(wire, "decode_reports"), (reply.Reply, "resolve"), (answers.Answers, "_done")]
"""What is called by the thread that reads the wire."""


@pytest.mark.parametrize("waits", [wait for _, wait in WAITS], ids=[name for name, _ in WAITS])
@pytest.mark.parametrize("place", READING, ids=lambda place: place[1])
def test_it_cannot_wait_where_its_thread_reads(
    gpu: Device,
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[Any, str],
    waits: Callable[[Device], Any],
) -> None:
    """Nobody else would read its answer; it is told, and what was read arrives."""
    a, told = gpu.put(SMALL).result(WAIT), list[str]()

    def deed() -> None:
        try:
            waits(gpu)
        except InvalidArgument as error:
            told.append(str(error))

    collecting(monkeypatch, *place, deed)
    np.testing.assert_array_equal(in_time(lambda: (a @ a).get(timeout_s=WAIT)), 4 * SMALL)
    assert settle(lambda: bool(told))
    assert "__del__" in told[0]
    np.testing.assert_array_equal(in_time(lambda: (a @ a).get(timeout_s=WAIT)), 4 * SMALL)


def test_it_cannot_wait_on_the_thread_that_supervises(gpu: Device) -> None:
    """A device that restarts would wait for that thread, and it for the device."""
    told, over = list[str](), threading.Event()

    def deed() -> None:
        try:
            gpu.run(time.sleep, 0.3).result()  # longer than it may look for without sleeping
        except InvalidArgument as error:
            told.append(str(error))
        finally:
            over.set()

    def collect() -> None:
        Finalized(deed)
        gc.collect()

    gpu._supervisor._services.event_loop.call_soon(collect)
    assert over.wait(WAIT)
    assert "__del__" in told[0]


def test_its_mistakes_are_told_to_its_handle(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    a = gpu.put(SMALL).result(WAIT)
    freed, made = gpu.put(SMALL), list[AccelRef]()
    freed.free()
    collecting(monkeypatch, *PLACES[0], lambda: made.append(blas.gemm(freed, a)))
    in_time(lambda: a @ a)
    assert settle(lambda: made[0].failed)
    assert "was freed" in str(made[0].error)


def test_the_lock_of_a_connection_knows_its_thread(gpu: Device) -> None:
    here: connection.Connection = gpu._requests.connection
    with here.lock:
        assert here.is_entered
        assert not in_time(lambda: [here.is_entered])[0]
    assert not here.is_entered
