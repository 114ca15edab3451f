"""How each fault that comes from outside the context is caused, and which failures it explains."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import Device, System
from accel_lab.actor.reply import Reply
from accel_lab.compute.process.spawner import ContextProcess
from accel_lab.compute.supervision.context_health import HEARTBEAT_LIMIT_S
from accel_lab.compute.wire.side_channel import Collected, DropSegment, Segment
from accel_lab.errors import AccelError, ArenaFull
from tests.faults.campaign.gate import garble

SIGNALS = (
    signal.SIGKILL,
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGTERM,
    signal.SIGBUS,
    signal.SIGFPE,
)


@contextmanager
def short_deadlines(device: Device, seconds: float) -> Iterator[None]:
    """Give every message that is sent meanwhile a deadline that a hang passes soon."""
    before, device.timeout_s = device.timeout_s, seconds
    try:
        yield
    finally:
        device.timeout_s = before


def until(predicate: Callable[[], bool], timeout_s: float = 30.0) -> bool:
    """Poll often until something holds that is expected within milliseconds."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0005)
    return True


def send_signal(device: Device, number: int) -> ContextProcess | None:
    """Send a signal to the process of a device's context, of whichever generation, if it lives."""
    supervisor = device._supervisor
    assert until(lambda: supervisor.process is not None or device.state == "stopped")
    process = supervisor.process
    if process is None:
        return None  # its system is closed
    assert until(lambda: process.pid != 0 or process.reaped)
    if process.reaped:
        return None
    with suppress(ProcessLookupError):  # it has just been reaped
        os.kill(process.pid, number)
    assert isinstance(process, ContextProcess)
    return process


def freeze(device: Device) -> None:
    """Stop the process of a device's context, and put the clock on until that is noticed."""
    supervisor = device._supervisor
    process = send_signal(device, signal.SIGSTOP)
    if process is None:
        return
    assert until(lambda: process.reaped or _state(process.pid) in "TZX")

    def put_on() -> None:
        supervisor.health._heard = time.monotonic() - HEARTBEAT_LIMIT_S - 1
        supervisor._watch(process)

    supervisor._services.event_loop.call_soon(put_on)


def _state(pid: int) -> str:
    """Return the letter that the kernel has for what a process does; X for none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def fail_starts(device: Device, variant: int) -> int:
    """Have the next contexts of a device end as they start; returns how many.

    They hear what no context expects first and say why they cannot start, or are killed before
    they hear anything.
    """
    supervisor, times = device._supervisor, 1 + variant % 2
    spawner, start = supervisor._services.spawner, supervisor.start
    left = times

    def fail() -> None:
        nonlocal left
        left -= 1
        if not left:
            del vars(supervisor)["start"]
        vars(spawner)["take"] = take
        try:
            start()
        finally:
            del vars(spawner)["take"]

    def take(index: int) -> ContextProcess:
        process = type(spawner).take(spawner, index)
        assert isinstance(process, ContextProcess)
        if variant >= len(SIGNALS) // 2:
            process.tell(Collected())
            return process

        def forked(pid: int, pidfd: int) -> None:
            ContextProcess.forked(process, pid, pidfd)
            os.kill(pid, SIGNALS[variant])

        vars(process).update(tell=lambda *_: True, forked=forked)
        return process

    vars(supervisor)["start"] = fail
    return times


def starts_fail(device: Device) -> bool:
    """Whether the next context of a device is to fail yet."""
    return "start" in vars(device._supervisor)


def lose_segments(lab: System, device: Device, *, late: bool) -> list[int]:
    """Have the context of a device lose the arena: it can be mapped no more, or comes `late`.

    Returns the numbers of the segments that this is true of.
    """
    supervisor, arena = device._supervisor, lab._arena
    with arena._growth:  # nobody makes or drops one meanwhile
        for segment in arena.segments:
            supervisor.tell(DropSegment(segment.id))
            if not late:
                unmappable = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                supervisor.tell(Segment(segment.id, segment.size), unmappable)
                os.close(unmappable)
        return [segment.id for segment in arena.segments]


def give_segments(lab: System, device: Device) -> None:
    """Have the context of a device map the arena again."""
    supervisor, arena = device._supervisor, lab._arena
    with arena._growth:
        for segment in arena.segments:
            supervisor.tell(DropSegment(segment.id))
            supervisor.tell(Segment(segment.id, segment.size), segment.fd)


def corrupt_down(device: Device, variant: int) -> None:
    """Write what no notebook would into the wire to the context, born or not."""
    supervisor = device._supervisor
    while True:
        assert until(lambda: _connected(device) or device.state == "stopped")
        link = supervisor._link
        if link is None:
            return  # its system is closed
        try:
            garble(link._writing, link._transport, variant)
        except (OSError, AttributeError):
            assert link.closed, device  # between the look and the writing
        else:
            return


def _connected(device: Device) -> bool:
    link = device._supervisor._link
    return link is not None and not link.closed


def interrupt(device: Device, replies: list[Reply[Any]], variant: int) -> None:
    """Press Ctrl-C while this thread waits for one of the replies; for odd variants twice."""
    button = device._requests.stop_button
    button._pressed = float("-inf")
    button.patience_s = 0.01  # what runs is held until the campaign lets it go
    for _ in range(1 + variant % 2):
        pending = [reply for reply in replies if not reply.done]
        if pending:
            _wait_interrupted(pending[variant % len(pending)])


def _wait_interrupted(reply: Reply[Any]) -> None:
    main = threading.main_thread().ident
    assert main == threading.get_ident()
    over = threading.Event()
    waiting = False

    def pressed(_signal: int, _frame: object) -> None:
        if waiting:  # and not starting or joining a thread, which would break off half-way
            raise KeyboardInterrupt

    def press() -> None:
        wait_s = 0.003
        while not over.wait(wait_s):
            if waiting:
                signal.pthread_kill(main, signal.SIGINT)
                wait_s = 15.0  # a finalizer that runs at that moment swallows one

    pressing = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, pressed)
    pressing.start()
    try:
        waiting = True
        with suppress(AccelError):
            reply.result(30.0)
        waiting = False
    except KeyboardInterrupt:
        waiting = False
    finally:
        over.set()
        pressing.join()
        signal.signal(signal.SIGINT, before)


def fill_arena(lab: System, device: Device, dice: random.Random) -> int:
    """Take all lab memory, and find that transfers say so; return how many did."""
    kept, refused = [], 0
    nbytes = 8 << 20
    while nbytes >= 1 << 14:
        try:
            kept.append(lab._arena.empty((nbytes,), "uint8", timeout_s=0.0))
        except ArenaFull:
            nbytes //= 2
    for _ in range(dice.randint(1, 3)):
        try:
            device.put(np.ones((256, 256)), timeout_s=0.01)
        except ArenaFull:
            refused += 1
    return refused
