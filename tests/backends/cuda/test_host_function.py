"""Waiting by a host function, also where CUDA calls it late or never."""

import ctypes
import threading

import pytest

from accel_lab.backends.cuda.completion.host_function import HostFunctionWait

CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
EVENT = 7


class Driver:
    """Fires events when a test says so, and calls what was enqueued, unless it is in error."""

    def __init__(self) -> None:
        self.has_fired = False
        self.error: Exception | None = None
        self.enqueued: list[tuple[int, int]] = []
        self.asked = 0
        self.is_enqueued = threading.Event()

    def enqueue(self, event: int, function: int, argument: int) -> None:
        assert event == EVENT
        self.enqueued.append((function, argument))
        self.is_enqueued.set()

    def fired(self, event: int) -> bool:
        assert event == EVENT
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.has_fired

    def fire(self) -> None:
        self.has_fired = True
        function, argument = self.enqueued.pop(0)
        CALL(function)(argument)


def begun(wait: HostFunctionWait, watchdog_s: float) -> threading.Thread:
    thread = threading.Thread(target=wait.until, args=(EVENT, watchdog_s))
    thread.start()
    return thread


def test_it_sleeps_until_it_is_called() -> None:
    driver = Driver()
    wait = HostFunctionWait(driver.enqueue, driver.fired)
    thread = begun(wait, 60.0)
    assert driver.is_enqueued.wait(30.0)
    driver.fire()
    thread.join(30.0)
    assert not thread.is_alive()
    assert driver.asked <= 3, "it asks before and after, and not in between"


def test_what_has_fired_needs_no_function() -> None:
    driver = Driver()
    driver.has_fired = True
    HostFunctionWait(driver.enqueue, driver.fired).until(EVENT, 60.0)
    assert not driver.enqueued


def test_a_call_that_never_comes_is_not_waited_for() -> None:
    driver = Driver()
    thread = begun(HostFunctionWait(driver.enqueue, driver.fired), 0.005)
    assert driver.is_enqueued.wait(30.0)
    driver.has_fired = True
    thread.join(30.0)
    assert not thread.is_alive()


def test_an_error_while_it_is_pending_is_told() -> None:
    driver = Driver()
    wait = HostFunctionWait(driver.enqueue, driver.fired)

    def break_it() -> None:
        assert driver.is_enqueued.wait(30.0)
        driver.error = RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

    threading.Thread(target=break_it).start()
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        wait.until(EVENT, 0.005)


def test_a_late_call_of_an_event_before_does_not_end_the_next_wait() -> None:
    driver = Driver()
    wait = HostFunctionWait(driver.enqueue, driver.fired)
    thread = begun(wait, 0.005)
    assert driver.is_enqueued.wait(30.0)
    driver.has_fired = True
    thread.join(30.0)  # the watchdog has seen it first
    driver.fire()
    driver.has_fired = False
    driver.is_enqueued.clear()
    thread = begun(wait, 60.0)
    assert driver.is_enqueued.wait(30.0)
    thread.join(0.1)
    assert thread.is_alive()
    driver.fire()
    thread.join(30.0)
    assert not thread.is_alive()
