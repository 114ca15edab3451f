"""The end of a system: everything is answered, wherever it is closed or copied."""

import gc
import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, blas
from accel_lab.errors import SystemClosed
from tests.faults.conftest import works

WAIT = 30.0
ONES = np.ones((8, 8), np.float32)


def test_close_answers_everything_that_is_pending(nothing_left: None) -> None:
    """SystemClosed, at once, also for those who wait in another thread."""
    lab = System("host", recover="stale").ready()
    (cpu,) = lab.devices
    slow = cpu.run(time.sleep, 60)
    answers: list[BaseException] = []

    def wait() -> None:
        try:
            slow.result()
        except BaseException as error:  # noqa: BLE001
            answers.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    begin = time.perf_counter()
    lab.close()
    waiter.join(WAIT)
    assert time.perf_counter() - begin < 5.0
    assert [type(a) for a in answers] == [SystemClosed]
    with pytest.raises(SystemClosed):
        cpu.put(ONES)
    lab.close()


def test_a_context_that_is_replaced_while_its_system_closes_says_closed(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread comes between the two steps in which a context is stopped."""
    with System("host", devices=1) as lab:
        (cpu,) = lab.devices
        reply = cpu.run(time.sleep, 60)
        connection = cpu._supervisor.requests.connection
        close = connection.close

        def late(*arguments: Any) -> Any:
            monkeypatch.setattr(connection, "close", close)
            cpu.replace()
            return close(*arguments)

        monkeypatch.setattr(connection, "close", late)
    with pytest.raises(SystemClosed, match="open another"):
        reply.result(WAIT)


def test_a_forked_child_finds_its_handles_invalid(lab: System, cpu: Device) -> None:
    """It gets a clear error instead of two processes on one wire."""
    ref = cpu.put(ONES)
    child = os.fork()
    if child == 0:
        try:
            blas.gemm(ref, ref)
        except SystemClosed as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert works(cpu)


def test_a_system_that_nobody_holds_closes_itself(nothing_left: None) -> None:
    """As when its cell is run again; a device or a buffer in use keeps it open."""
    cpu = System("host", recover="stale").ready().devices[0]
    gc.collect()
    assert works(cpu)
    ref = cpu.put(ONES).result(WAIT)
    del cpu
    gc.collect()
    assert (ref.device.get(ref).result(WAIT) == 1.0).all()
    del ref
    gc.collect()  # `nothing_left` sees its processes, threads and descriptors go
