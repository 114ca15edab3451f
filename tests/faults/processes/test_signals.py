"""Ctrl-C that the operating system gives to another thread than the main one.

It may choose any, and Python heeds a signal only when the main thread runs again.
"""

import queue
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.actor.reply import Reply
from accel_lab.compute.wire.link import Link
from accel_lab.errors import AccelError, Cancelled, ContextReplaced, Interrupted
from tests.faults.conftest import settle

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
    link = cpu._requests.connection.current_link
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
    from accel_lab.views.dashboard.dashboard import dashboard_of_all

    with dashboard_of_all(port=0) as served:
        pressed(served.wait)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def interrupted_by(replies: list[Reply[Any]]) -> None:
    """Have Ctrl-C come when the second of them is delivered."""
    replies[1].add_waiter(interrupt)
    replies[-1].result(WAIT)
    time.sleep(1)  # if another thread has delivered it


@pytest.mark.parametrize("kind", ["ping", "put", "run"])
def test_while_a_frame_is_delivered_it_loses_none_of_its_answers(cpu: Device, kind: str) -> None:
    def send() -> Reply[Any]:
        if kind == "ping":
            return cpu.ping()
        return cpu.put(np.ones(4)) if kind == "put" else cpu.run(list)

    send().result(WAIT)
    for _ in range(10):
        replies = [send() for _ in range(40)]
        with pytest.raises(KeyboardInterrupt):
            interrupted_by(replies)
        deadline = time.monotonic() + WAIT
        while not all(reply.done for reply in replies):
            with suppress(KeyboardInterrupt):
                cpu.ping().result(WAIT)
            assert time.monotonic() < deadline, [reply.done for reply in replies]
    assert cpu.in_flight == 0


class Endless:
    def __setstate__(self, _: object) -> None:
        interrupt()
        time.sleep(60)


def endless() -> Endless:
    made = Endless()
    made.__dict__["x"] = 1
    return made


def test_it_ends_an_answer_that_takes_long_to_be_made_here(cpu: Device) -> None:
    others = [cpu.run(time.sleep, 1.0)]  # so that this thread waits when the answer comes
    others += [cpu.run(list) for _ in range(4)]
    reply = cpu.run(endless)
    others += [cpu.run(list) for _ in range(5)]
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        reply.result(WAIT)
    for other in others:  # those behind it were taken back
        with suppress(Cancelled, Interrupted):
            other.result(WAIT)
    with pytest.raises(Interrupted, match="was being rebuilt"):
        reply.result(WAIT)
    assert time.monotonic() - began < WAIT


def test_pressed_again_and_again_it_leaves_nothing_that_is_never_answered(
    cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, main, chance = 100, threading.get_ident(), random.Random(0)
    going = threading.Semaphore(0)
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    # Python drops an interrupt that comes in a weak reference's callback, and says so.
    others = sys.unraisablehook

    def dropped(told: "sys.UnraisableHookArgs") -> None:
        if issubclass(told.exc_type, KeyboardInterrupt):
            heard.put("dropped")
        else:
            others(told)

    monkeypatch.setattr(sys, "unraisablehook", dropped)

    def press_often() -> None:
        for _ in range(rounds):
            assert going.acquire(timeout=WAIT)
            time.sleep(chance.uniform(0, 0.01))
            signal.pthread_kill(main, signal.SIGINT)
            while heard.get(timeout=WAIT) == "dropped":
                signal.pthread_kill(main, signal.SIGINT)

    replies: list[Reply[Any]] = []

    def send_and_wait() -> None:
        going.release()
        while True:
            sent = [cpu.ping() for _ in range(8)]
            replies.extend(sent)
            with suppress(ContextReplaced):  # of a second one within three seconds
                sent[-1].result(WAIT)

    pressing = threading.Thread(target=press_often)
    pressing.start()
    for _ in range(rounds):
        with suppress(KeyboardInterrupt):
            send_and_wait()
        heard.put("came")
    pressing.join(WAIT)
    for reply in replies:
        with suppress(AccelError):
            reply.result(WAIT)
    assert settle(lambda: cpu.in_flight == 0)  # also those that it came in the sending of


def test_a_download_that_it_ends_as_it_is_sent_writes_to_nothing_of_the_users(
    cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device had it already, and its place in the arena was the next array's."""
    lab, write = cpu._system, Link._write
    assert isinstance(lab, System)
    x = cpu.put(np.full(8_000_000, 5.0)).result(WAIT)

    def interrupted(link: Link, frame: bytes) -> None:
        write(link, frame)
        monkeypatch.setattr(Link, "_write", write)
        signal.raise_signal(signal.SIGINT)

    for _ in range(5):
        cpu.get(x).result(WAIT)
        monkeypatch.setattr(Link, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cpu.get(x)
        mine = lab.empty((8_000_000,), "float64")
        mine[-1000:] = 1.0
        cpu.ping().result(WAIT)
        assert (mine[-1000:] == 1.0).all()
        del mine
    assert settle(lambda: lab.arena().blocks == 0)
