"""Ctrl-C that the operating system gives to another thread than the main one.

It may choose any, and Python heeds a signal only when the main thread runs again.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pytest

from accel_lab import Device, System
from accel_lab.actor.reply import Reply
from accel_lab.errors import AccelError

WAIT = 30.0


@pytest.fixture
def cpu() -> Iterator[Device]:
    with System("host", devices=1) as lab:
        yield lab.devices[0]


def press() -> None:
    """Have this thread get Ctrl-C, in a while."""
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def pressed(wait: Callable[[], Any]) -> None:
    """Call what blocks, and see it end by Ctrl-C."""
    pressing = threading.Thread(target=press)
    pressing.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert time.monotonic() - began < WAIT
    pressing.join()


def test_it_ends_the_wait_of_who_reads_the_answers(cpu: Device) -> None:
    pressed(cpu.run(time.sleep, 60).result)


def test_it_ends_the_wait_of_who_has_another_thread_read_them(cpu: Device) -> None:
    slow = cpu.run(time.sleep, 60)

    def read() -> None:
        with suppress(AccelError):
            slow.result(60)

    reader = threading.Thread(target=read)
    reader.start()
    link = cpu._requests.current_link
    assert link is not None
    while not link._reading.locked():
        time.sleep(0.001)
    pressed(cpu.ping().result)
    cpu.replace()
    reader.join(WAIT)
    assert not reader.is_alive()


def test_it_ends_the_wait_for_a_reply_without_a_wire() -> None:
    pressed(Reply[None](None).result)


def test_it_ends_the_wait_for_a_dashboard() -> None:
    if find_spec("panel") is None:
        pytest.skip("panel comes with the lab extra")
    from accel_lab.views.dashboard import dashboard_of_all

    with dashboard_of_all(port=0) as served:
        pressed(served.wait)
