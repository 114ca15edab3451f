"""The notebook's end of a wire: when it ends, what waits for it, and what leaves in which order."""

import asyncio
import os
import socket
import threading
import time

import pytest

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.reply import Reply
from accel_lab.compute.wire.codec import Done, batch, encode_reports
from accel_lab.compute.wire.link import Link
from accel_lab.compute.wire.transport import open_transport


@pytest.mark.parametrize("late", [True, False])
def test_a_wire_may_end_while_a_loop_comes_to_read_it(
    monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    """Its descriptor may have been another's by then; and no loop polls a wire that has ended."""
    upper, lower = socket.socketpair()
    event_loop = EventLoop("wire")
    event_loop.start()
    link = Link(
        open_transport(upper, upper=True),
        event_loop,
        lambda *_: None,
        lambda *_: None,
        lambda: None,
        spin_s=0.0,
    )
    copy, copies = os.dup, []
    closing = threading.Thread(target=link.close)

    def end() -> None:
        closing.start()
        ended = threading.Event()
        while not link.closed:
            pass
        event_loop.call_soon(ended.set)
        ended.wait(0.5)  # it may be held up by whoever reads

    def dup(fd: int) -> int:
        if not late:
            end()
        copies.append(copy(fd))
        if late:
            end()
        return copies[-1]

    monkeypatch.setattr(os, "dup", dup)

    async def attend() -> tuple[bool, bool]:
        loop = asyncio.get_running_loop()
        attended = link.attend(loop, Reply[None]())
        await asyncio.sleep(0)
        return attended, loop.remove_reader(copies[0])

    try:
        assert asyncio.run(attend()) == (False, False)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(copies[0])
    finally:
        closing.join()
        closed = threading.Event()
        event_loop.call_soon(closed.set)  # behind the closing of the descriptors
        assert closed.wait(30.0)
        event_loop.stop()
        lower.close()


@pytest.mark.parametrize(("spin_s", "comes"), [(1e-6, True), (0.0, False)])
def test_who_knows_that_an_answer_comes_soon_does_not_sleep(spin_s: float, *, comes: bool) -> None:
    """But on a machine without a core to spin on."""
    upper, lower = socket.socketpair()
    event_loop, reply = EventLoop("wire"), Reply[None]()
    event_loop.start()
    link = Link(
        open_transport(upper, upper=True),
        event_loop,
        lambda *_: reply.resolve(),
        lambda *_: None,
        lambda: None,
        spin_s=spin_s,
    )

    def answer() -> None:
        while not link._reading.locked():
            time.sleep(0)
        open_transport(lower, upper=False).send(encode_reports([Done([1])]))

    answering = threading.Thread(target=answer)
    try:
        event_loop.remove_reader(upper.fileno())  # who spins reads alone
        if comes:
            answering.start()
        assert link.spin(reply, 30.0) is comes
    finally:
        if comes:
            answering.join()
        link.close()
        closed = threading.Event()
        event_loop.call_soon(closed.set)
        assert closed.wait(30.0)
        event_loop.stop()
        lower.close()


def test_a_lone_message_leaves_before_what_is_free_is_told() -> None:
    """Who waits for its answer does not wait for that."""
    upper, lower = socket.socketpair()
    event_loop = EventLoop("wire")
    freed = [b"free"]
    link = Link(
        open_transport(upper, upper=True),
        event_loop,
        lambda *_: None,
        lambda *_: None,
        lambda: freed.pop() if freed else None,
        spin_s=0.0,
    )
    there = open_transport(lower, upper=False)
    try:
        link.send(b"message", idle=True)
        link.send(b"another", idle=False)
        freed.append(b"free too")
        link.flush()
        frames = [bytes(there.receive() or b"") for _ in range(3)]
        expected = [[b"message"], [b"free"], [b"another", b"free too"]]
        assert frames == [batch(parts) for parts in expected]
    finally:
        link.close()
        event_loop.start()
        closed = threading.Event()
        event_loop.call_soon(closed.set)
        assert closed.wait(30.0)
        event_loop.stop()
        lower.close()
