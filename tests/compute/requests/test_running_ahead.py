"""A loop that sends faster than its device works, and how it is stopped."""

import gc
import os
import signal
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, array
from accel_lab.compute.message.buffer import Owner
from accel_lab.compute.output import cell_origin
from accel_lab.compute.wire.link import Link
from accel_lab.errors import StaleRef
from tests.faults.conftest import settle

WAIT = 60.0
MESSAGES = 2000
FEW = 300
"""Two batches, and what a busy machine has on its way."""


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host") as system:
        yield system.ready(WAIT)


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


def _hold(place: str) -> None:
    import os
    import time

    while not os.path.exists(place):  # noqa: PTH110 - this runs in the context
        time.sleep(0.01)


def held(gpu: Device, tmp_path: Path) -> Path:
    """Keep the device from working until this file is there."""
    gate = tmp_path / "gate"
    gpu.run(_hold, str(gate))
    return gate


def buffers_held() -> int:
    """Count the buffers that this process holds."""
    return sum(type(one) is Owner for one in gc.get_objects())


def test_it_keeps_few_of_its_results(gpu: Device, tmp_path: Path) -> None:
    """Those that nothing but their unanswered requests has are freed at once."""
    x = gpu.put(np.ones(4))
    gate = held(gpu, tmp_path)
    before = buffers_held()
    for _ in range(MESSAGES):
        x = x + 1.0
    assert gpu.in_flight >= MESSAGES
    assert buffers_held() - before < FEW
    gate.touch()
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), np.full(4, 1.0 + MESSAGES))


def test_functions_that_run_ahead_keep_few_of_their_results(gpu: Device, tmp_path: Path) -> None:
    """Of which only the context knows the shapes."""
    x: Any = gpu.put(np.ones(4))
    gate = held(gpu, tmp_path)
    before = buffers_held()
    for _ in range(MESSAGES):
        x = gpu.run(abs, x, pure=True)
    assert buffers_held() - before < FEW
    gate.touch()
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), np.ones(4))


def test_what_somebody_holds_is_kept(gpu: Device, tmp_path: Path) -> None:
    x = gpu.put(np.ones(4))
    gate = held(gpu, tmp_path)
    kept = [x + float(k) for k in range(MESSAGES)]
    gate.touch()
    for k in (0, 1, 63, 64, MESSAGES // 2, MESSAGES - 1):
        np.testing.assert_array_equal(kept[k].get(timeout_s=WAIT), np.full(4, 1.0 + k))


def test_each_of_several_results_that_somebody_holds_is_kept(gpu: Device, tmp_path: Path) -> None:
    """Also where the look for what nobody holds comes before the caller has them."""
    x = gpu.put(np.arange(4.0)).result(WAIT)
    gate = held(gpu, tmp_path)
    kept: list[Any] = [gpu.ask(array.Unique(x, indices=True)) for _ in range(MESSAGES // 4)]
    assert [at for at, parts in enumerate(kept) if not parts.indices.is_valid] == []
    gate.touch()
    for parts in kept[:: FEW // 4]:
        np.testing.assert_array_equal(parts.values.get(timeout_s=WAIT), np.arange(4.0))


def test_a_handle_that_is_found_again_says_that_it_was_freed(gpu: Device, tmp_path: Path) -> None:
    x = gpu.put(np.ones(4))
    gate = held(gpu, tmp_path)
    found = [weakref.ref(x + 1.0) for _ in range(MESSAGES)]
    again = [one for ref in found[: MESSAGES // 2] if (one := ref()) is not None]
    assert again  # its request is unanswered
    with pytest.raises(StaleRef, match="was freed"):
        again[0] + 1.0
    gate.touch()


def test_the_failure_of_what_nobody_holds_is_told(lab: System, gpu: Device, tmp_path: Path) -> None:
    gate = held(gpu, tmp_path)
    for _ in range(MESSAGES // 4):
        gpu.run(_fail)
    gate.touch()
    gpu.ping().result(WAIT)
    with pytest.raises(ExceptionGroup) as caught:
        lab.check()
    assert len(caught.value.exceptions) == MESSAGES // 4
    assert "on purpose" in str(caught.value.exceptions[0])


def _fail() -> None:
    raise ValueError("on purpose")


def test_requests_are_counted_while_answers_come(gpu: Device, tmp_path: Path) -> None:
    """A collection in the middle lets other code run, which may take an answer."""
    pending = gpu._requests.answers.pending
    gate = held(gpu, tmp_path)
    for _ in range(5000):
        gpu.ping()

    def answered(phase: str, _: Any) -> None:
        if phase == "stop" and len(pending) > 1:
            seq, reply = pending.popitem()
            reply.resolve()
            del seq

    threshold = gc.get_threshold()
    gc.callbacks.append(answered)
    gc.set_threshold(1, 1, 1)
    try:
        unanswered = gpu._requests.cancellation.unanswered()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(answered)
    assert unanswered
    gate.touch()


@pytest.mark.parametrize("when", ["before it is sent", "after it is sent"])
def test_an_interrupt_leaves_nothing_in_flight(
    gpu: Device, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    send, x = Link.send, gpu.put(np.ones(4)).result(WAIT)

    def interrupted(link: Link, data: bytes, *, idle: bool) -> bool:
        monkeypatch.undo()
        if when == "after it is sent":
            send(link, data, idle=idle)
        raise KeyboardInterrupt

    monkeypatch.setattr(Link, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        x + 1.0
    gpu.ping().result(WAIT)
    assert settle(lambda: gpu.in_flight == 0)
    np.testing.assert_array_equal((x + 1.0).get(timeout_s=WAIT), np.full(4, 2.0))


def test_a_second_press_while_requests_are_taken_back_replaces_the_context(
    gpu: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It comes when it can leave nothing half taken back."""
    unqueue = gpu._requests.cancellation._unqueue
    held(gpu, tmp_path)
    for _ in range(100):
        gpu.ping()

    def pressed(seq: int) -> None:
        monkeypatch.undo()
        os.kill(os.getpid(), signal.SIGINT)
        unqueue(seq)

    monkeypatch.setattr(gpu._requests.cancellation, "_unqueue", pressed)
    outlast = gpu._requests.stop_button.stop(cell_origin.current())
    began = time.monotonic()
    outlast()
    assert time.monotonic() - began < 2.0
    assert settle(lambda: gpu.generation == 2 and gpu.in_flight == 0)
