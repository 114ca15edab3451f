"""A stream comes over whole and in order, however often its connections are cut."""

import os
import random
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.compute.cluster.entries import (
    End,
    Exited,
    Fill,
    Forked,
    Frame,
    Heard,
    Kill,
    Printed,
    Region,
    Take,
    Tell,
    Unloadable,
)
from accel_lab.compute.cluster.ssh import stream as streams
from accel_lab.compute.cluster.ssh.batches import decode, encode
from accel_lab.compute.cluster.ssh.squeezer import LEAST_BYTES, Squeezer, unsqueezed
from accel_lab.compute.cluster.ssh.stream import PARCEL_BYTES, Stream, StreamEnded
from accel_lab.compute.streams import Pooled
from accel_lab.compute.wire.side_channel import Bind, GroupWord, Heartbeat, Segment
from tests.compute.cluster.conftest import until

WAIT = 20.0


class Pair:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(0)
        self._end = end
        self.read_fd = self.write_fd = end.fileno()
        self.released = threading.Event()

    def close(self) -> None:
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        self._end.close()
        self.released.set()


@pytest.fixture
def ends() -> Iterator[tuple[Stream, Stream]]:
    made = Stream("near"), Stream("far")
    yield made
    for one in made:
        one.end("the test is over")


def connect(ends: tuple[Stream, Stream]) -> tuple[Pair, Pair]:
    """Connect both, as the two sides do."""
    near, far = ends
    pairs = tuple(map(Pair, socket.socketpair()))
    received = near.detach(), far.detach()
    near.attach(pairs[0], received[1])
    far.attach(pairs[1], received[0])
    return pairs[0], pairs[1]


def test_what_is_sent_comes_once_and_in_order(ends: tuple[Stream, Stream]) -> None:
    """While the connection is cut again and again, by either side, in the middle of parcels."""
    rng = random.Random(7)
    near, far = ends
    sizes = [rng.choice([0, 1, 700, PARCEL_BYTES, 3 * PARCEL_BYTES + 5]) for _ in range(60)]
    messages = [np.random.default_rng(at).bytes(size) for at, size in enumerate(sizes)]
    got: dict[str, list[bytes]] = {"near": [], "far": []}

    def send(end: Stream) -> None:
        for message in messages:
            end.send([message[:100], memoryview(message)[100:]])

    def receive(end: Stream, into: list[bytes]) -> None:
        while len(into) < len(messages):
            found = end.receive(WAIT)
            assert found is not None
            into.append(found)

    threads = [threading.Thread(target=send, args=(end,)) for end in ends]
    threads += [
        threading.Thread(target=receive, args=(end, into))
        for end, into in zip(ends, got.values(), strict=True)
    ]
    pairs = connect(ends)
    for thread in threads:
        thread.start()
    for _ in range(20):
        time.sleep(rng.random() * 0.02)
        rng.choice(pairs).close()
        assert near.wait(lambda: near.cut_at is not None, WAIT)
        pairs = connect(ends)
    for thread in threads:
        thread.join(WAIT)
    assert got == {"near": messages, "far": messages}
    assert near._waiting_bytes + far._waiting_bytes == 0 or until_taken(ends)


def until_taken(ends: tuple[Stream, Stream]) -> bool:
    """Whether both sides soon keep nothing to be sent again."""
    return all(end.wait(lambda end=end: not end._waiting_bytes, WAIT) for end in ends)  # type: ignore[misc]


def test_who_sends_too_much_waits_and_ends_with_the_stream(
    ends: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "WINDOW_BYTES", PARCEL_BYTES)
    near, far = ends
    connect(ends)
    data = os.urandom(PARCEL_BYTES)
    ended: list[str] = []

    def send() -> None:
        try:
            for _ in range(9):
                near.send([data])
        except StreamEnded as error:
            ended.append(str(error))

    thread = threading.Thread(target=send)
    thread.start()
    assert far.receive(WAIT) == data
    assert near.wait(lambda: near._last >= 2, WAIT)
    thread.join(0.1)
    assert thread.is_alive()
    assert near._last <= 3
    near.end("it is enough")
    thread.join(WAIT)
    assert ended == ["it is enough"]


def test_a_message_larger_than_what_may_wait_comes_whole(
    ends: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "WINDOW_BYTES", PARCEL_BYTES)
    near, far = ends
    connect(ends)
    messages = [os.urandom(size * PARCEL_BYTES + 1) for size in (1, 9, 0, 5)]

    def send() -> None:
        for one in messages:
            near.send([one])

    thread = threading.Thread(target=send)
    thread.start()
    assert [far.receive(WAIT) for _ in messages] == messages
    thread.join(WAIT)
    assert until_taken(ends)
    assert not far.is_receiving


def test_a_silent_connection_counts_as_cut(
    ends: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SILENT_S", 0.2)
    monkeypatch.setattr(streams, "LOOK_S", 0.05)
    near, _ = ends
    mine, other = map(Pair, socket.socketpair())
    near.attach(mine, 0)
    assert near.wait(lambda: near.cut_at is not None, WAIT)
    assert mine.released.wait(WAIT)
    other.release()


def test_threads_that_carry_say_so(ends: tuple[Stream, Stream]) -> None:
    """A finalizer that comes there may not wait for what they carry."""
    near, _ = ends
    asked: list[bool] = []

    class Asking(Pair):
        def release(self) -> None:
            asked.append(near.is_entered)  # the thread that served it is done
            super().release()

        @property
        def write_fd(self) -> int:
            asked.append(near.is_entered)
            return self.read_fd

        @write_fd.setter
        def write_fd(self, _: int) -> None: ...

    mine, other = socket.socketpair()
    pair = Asking(mine)
    near.attach(pair, 0)
    near.send([b"any"])
    assert until(lambda: True in asked)
    other.close()
    assert pair.released.wait(WAIT)
    assert asked[-1] is False
    assert not near.is_entered


def test_the_end_of_a_session_is_told(ends: tuple[Stream, Stream]) -> None:
    near, far = ends
    connect(ends)
    near.say_bye()
    with pytest.raises(StreamEnded, match="closed"):
        far.receive(WAIT)


@pytest.mark.parametrize("damage", [b"\0" * 13, b"\1" + b"\xff" * 12, b"\1\0\0\0\0\7" + b"\0" * 7])
def test_damage_cuts_and_brings_nothing(ends: tuple[Stream, Stream], damage: bytes) -> None:
    near, _ = ends
    mine, other = map(Pair, socket.socketpair())
    near.attach(mine, 0)
    os.write(other.write_fd, damage)
    assert near.wait(lambda: near.cut_at is not None, WAIT)
    assert near.receive(0) is None
    other.release()


@given(st.binary(max_size=5_000), st.floats(1e3, 1e12))
def test_what_is_compressed_comes_back(data: bytes, rate: float) -> None:
    squeezer = Squeezer()
    squeezer.rate = rate
    found = squeezer.squeeze(data)
    if found is not None:
        assert len(found) < len(data)
        assert unsqueezed(found) == data


def test_compression_is_for_what_gains_by_it() -> None:
    zeros, noise = bytes(1 << 18), np.random.default_rng(1).bytes(1 << 18)
    slow, fast = Squeezer(), Squeezer()
    slow.rate, fast.rate = 1e6, 1e12
    assert slow.squeeze(zeros) == zlib.compress(zeros, 1)
    assert slow.squeeze(noise) is None
    assert fast.squeeze(zeros) is None
    assert slow.squeeze(zeros[: LEAST_BYTES - 1]) is None
    for _ in range(40):
        slow.carried(1 << 20, 1e-6)
    assert slow.squeeze(zeros) is None
    with pytest.raises(ValueError, match="incorrect"):
        unsqueezed(b"nothing of the kind")


def test_every_entry_comes_back_as_it_was() -> None:
    bind = Bind("host", 1, 2, None, 3, 0.5, True, [b"/x"], b"/", Pooled(3))  # noqa: FBT003
    entries: list[Any] = [
        Take(3),
        Tell(3, bind),
        Tell(3, Segment(1, 4096)),
        Tell(3, GroupWord(5, "why")),
        Fill(1, 64, np.arange(99, dtype=np.uint8)),
        Frame(3, b"\0frame", {7: Region(1, 2, 3)}),
        Fill(1, 8, np.zeros(0, np.uint8)),
        End(3),
        Kill(3),
        Forked(3, 99),
        Heard(3, Heartbeat(7, {"fft": {"plans": 2}})),
        Printed(3, "stdout", b"\xff\n"),
        Exited(3, "SIGKILL", (1, 1 << 63)),
        Unloadable("why"),
    ]
    found = decode(b"".join(encode(entries)))
    assert [type(one) for one in found] == [type(one) for one in entries]
    for one, other in zip(found, entries, strict=True):
        if isinstance(one, Fill):
            np.testing.assert_array_equal(one.data, other.data)
            assert one[:2] == other[:2]
        else:
            assert one == other
