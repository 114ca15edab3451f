"""Contexts that live and do nothing: frozen by a signal, or reading no more of what comes."""

import ctypes
import threading

import pytest

from accel_lab import System
from tests.faults.wedged import DEVICES, LIMIT_S, WAIT_S, assert_replaced, limit


@pytest.mark.parametrize("rings", [True, False])
def test_both_are_replaced_and_those_that_work_are_not(
    monkeypatch: pytest.MonkeyPatch,
    rings: bool,  # noqa: FBT001
) -> None:
    limit(monkeypatch, rings=rings)
    with System("host", devices=DEVICES) as lab:
        assert_replaced([lab])


def test_a_notebook_that_stood_still_itself_takes_no_context_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stopped by a terminal or a debugger, or in a call that keeps the interpreter's lock."""
    limit(monkeypatch, rings=True)
    with System("host", devices=2) as lab:
        lab.ready(WAIT_S)
        ctypes.PyDLL(None).sleep(int(2 * LIMIT_S))  # keeps the lock
        looked = threading.Event()
        lab._event_loop.call_later(0.1, looked.set)  # behind what has become due meanwhile
        assert looked.wait(WAIT_S)
        for device in lab.devices:
            device.ping().result(WAIT_S)
            assert device.generation == 1
