"""Supervision goes on while what one device has brought about takes long in the notebook."""

import gc
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from accel_lab import Device, System, array
from accel_lab.errors import AccelError, SystemClosed, UserCodeError
from tests.faults.conftest import pid_of, settle, works

WAIT = 30.0


class Held:
    """Something that takes long: it has begun, and it goes on when it may."""

    def __init__(self) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def take_long(self) -> None:
        self.begun.set()
        self.goes_on.wait(2 * WAIT)


@pytest.fixture
def held(nothing_left: None) -> Iterator[Held]:
    """Return what a test may be held up by, and end that."""
    one = Held()
    yield one
    one.goes_on.set()


def _replaced(lab: System, device: Device) -> bool:
    """Lose a device's context; whether it works again soon."""
    before = device.generation
    os.kill(pid_of(lab, device), signal.SIGKILL)
    return settle(lambda: device.generation > before, 5.0) and works(device)


class Jammed(io.StringIO):
    """A stream that takes nothing, as that of a program whose pipe nobody reads."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self._held = held

    def write(self, text: str) -> int:
        self._held.take_long()
        return super().write(text)


def test_what_a_context_prints_is_written(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written on the system thread."""
    jammed = Jammed(held)
    with System("host", devices=2, recover="stale") as lab:
        cpu, other = lab.devices
        monkeypatch.setattr(sys, "stdout", jammed)
        cpu.run(print, "here")
        assert held.begun.wait(WAIT)
        before = other.generation
        os.kill(pid_of(lab, other), signal.SIGKILL)
        try:
            assert settle(lambda: other.generation > before and other.state == "running", 5.0)
        finally:
            held.goes_on.set()
        assert settle(lambda: "here" in jammed.getvalue())


class Slow:
    """Takes its time to be rebuilt, for as long as the notebook's `sys` says."""

    def __init__(self) -> None:
        self.made = True

    def __setstate__(self, state: dict[str, bool]) -> None:
        vars(sys)["held_up"].take_long()
        self.__dict__ = state


Slow.__module__ = "__main__"


def test_an_answer_that_nobody_waits_for_is_rebuilt_by_who_looks(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was rebuilt on the system thread, and that held up the end of the system, too."""
    monkeypatch.setattr(sys, "held_up", held, raising=False)
    with System("host", devices=2, recover="stale") as lab:
        cpu, other = lab.ready(WAIT).devices
        reply = cpu.run(Slow)
        assert settle(lambda: reply.done)
        assert not held.begun.is_set()
        assert _replaced(lab, other)
        held.goes_on.set()
        assert reply.result(WAIT).made
        assert reply.result(WAIT) is reply.result(WAIT)


@pytest.mark.usefixtures("nothing_left")
def test_an_answer_that_nobody_waits_for_and_that_cannot_be_rebuilt_says_so() -> None:
    with System("host", recover="stale") as lab:
        (cpu,) = lab.ready(WAIT).devices
        reply = cpu.run(Slow)
        assert settle(lambda: reply.done)
        with pytest.raises(UserCodeError, match="cannot be rebuilt"):
            reply.result(WAIT)  # there is none
        assert reply.failed
        with pytest.raises(UserCodeError, match="cannot be rebuilt"):
            reply.result(WAIT)


def test_a_record_that_cannot_be_written(held: Held) -> None:
    """What a context took along is looked up in it, which was done on the system thread."""
    with System("host", devices=2, recover="replay") as lab:
        cpu, other = lab.ready(WAIT).devices
        recorder = cpu._requests.recorder
        assert recorder is not None
        recorder.followers.append(lambda _: held.take_long())
        reply = cpu.run(time.sleep, 60, pure=True)
        assert held.begun.wait(WAIT)
        os.kill(pid_of(lab, cpu), signal.SIGKILL)
        assert settle(lambda: cpu.generation == 2)
        assert _replaced(lab, other)
        lab._supervisors[0].stop(SystemClosed("on purpose"))  # which answers everything
        with pytest.raises(SystemClosed):
            reply.result(WAIT)
        held.goes_on.set()


class Lingering:
    """Takes its time to be collected, except by the thread of the test."""

    def __init__(self, held: Held) -> None:
        self.held, self.me = held, self

    def __del__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.held.take_long()


def test_garbage_is_collected_for_a_device_that_is_full(held: Held) -> None:
    """It was collected on the system thread."""
    with System("host", devices=2, recover="stale", memory_bytes=1 << 20, spill=False) as lab:
        cpu, other = lab.devices
        gc.collect()
        gc.disable()
        try:
            Lingering(held)
            filled = [array.zeros(cpu, (n,), "float32") for n in (1 << 17, 3 << 16)]
            assert held.begun.wait(WAIT)
            assert _replaced(lab, other)
            assert all(one.known for one in filled)
        finally:
            held.goes_on.set()
            gc.enable()
        with suppress(AccelError):
            lab.check()
