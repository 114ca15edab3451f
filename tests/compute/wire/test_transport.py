"""Both wires: frames arrive whole and in order, a sleeper is woken, the end is the end."""

import os
import random
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.compute.machine.ring import CAPACITY, LARGEST_FRAME, make_rings
from accel_lab.compute.wire.transport import Transport, open_transport

WAIT_S = 10.0
KINDS = ("ring", "socket")


def pair(kind: str) -> tuple[Transport, Transport]:
    """Return the notebook's end and the context's."""
    upper, lower = socket.socketpair()
    if kind == "socket":
        return open_transport(upper, upper=True), open_transport(lower, upper=False)
    memory = make_rings()
    other = os.dup(memory)
    return open_transport(upper, memory, upper=True), open_transport(lower, other, upper=False)


@pytest.fixture(params=KINDS)
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[Transport, Transport]]:
    upper, lower = pair(request.param)
    yield upper, lower
    upper.close()
    lower.close()


def next_frame(end: Transport) -> bytes:
    """Return the next frame; fail when none comes."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        frame = end.receive()
        if frame is not None:
            return bytes(frame)
        if end.sleep():
            end.wait(deadline - time.monotonic())
            end.wake()
    pytest.fail("no frame came: a wake-up was lost")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.just(-1), st.integers(1, 300), st.integers(1, LARGEST_FRAME)), max_size=30
    )
)
def test_frames_arrive_whole_and_in_order(kind: str, steps: list[int]) -> None:
    """A step sends a frame of that size, or receives one; a frame without room is kept."""
    upper, lower = pair(kind)
    unsent: deque[bytes] = deque()
    expected: deque[bytes] = deque()
    for number, size in enumerate(steps):
        if size > 0:
            unsent.append(number.to_bytes(1, "big") * size)
        elif expected:
            frame = lower.receive()
            assert frame is not None or kind == "socket"
            if frame is not None:
                assert bytes(frame) == expected.popleft()
        while unsent and upper.send(unsent[0]):
            expected.append(unsent.popleft())
    while expected or unsent:
        frame = lower.receive()
        if frame is not None:
            assert bytes(frame) == (expected or unsent)[0]
            (expected or unsent).popleft()
        while unsent and upper.send(unsent[0]):
            expected.append(unsent.popleft())
    upper.close()
    lower.close()


def test_each_direction_is_its_own(ends: tuple[Transport, Transport]) -> None:
    upper, lower = ends
    assert upper.send(b"down")
    assert lower.send(b"up")
    assert next_frame(upper) == b"up"
    assert next_frame(lower) == b"down"
    assert upper.receive() is None


def test_a_full_wire_takes_frames_again_once_they_are_read(
    ends: tuple[Transport, Transport],
) -> None:
    upper, lower = ends
    frame = bytes(100_000)
    sent = 0
    while upper.send(frame):
        sent += 1
    assert sent * len(frame) <= 2 * CAPACITY, "it is bounded"
    for _ in range(sent):
        assert len(next_frame(lower)) == len(frame)
    while not upper.send(frame):
        lower.receive()


def test_what_is_sent_after_an_offer_arrives_whether_that_was_taken_or_not(
    ends: tuple[Transport, Transport],
) -> None:
    """An offer that was refused is dropped, and what is sent next is something else."""
    upper, lower = ends
    offered = 0
    while upper.offer(b"x" * 50_000):
        offered += 1
    expected = [b"x" * 50_000] * offered + [b"first", b"second"]
    got = []
    for frame in expected[offered:]:
        while not upper.send(frame):
            got.append(next_frame(lower))
    got += [next_frame(lower) for _ in expected[len(got) :]]
    assert got == expected
    assert lower.receive() is None


def test_what_was_sent_before_the_end_arrives_before_it(ends: tuple[Transport, Transport]) -> None:
    upper, lower = ends
    assert lower.send(b"last words")
    lower.shutdown()
    lower.close()
    assert next_frame(upper) == b"last words"
    with pytest.raises(EOFError):
        next_frame(upper)
    with pytest.raises(EOFError):
        upper.receive()


def test_a_frame_that_could_never_fit_is_refused() -> None:
    upper, lower = pair("ring")
    with pytest.raises(ValueError, match="larger than"):
        upper.send(bytes(LARGEST_FRAME + 1))
    upper.close()
    lower.close()


def test_a_damaged_ring_is_noticed() -> None:
    upper_socket, lower_socket = socket.socketpair()
    memory = make_rings()
    upper = open_transport(upper_socket, os.dup(memory), upper=True)
    lower = open_transport(lower_socket, os.dup(memory), upper=False)
    assert upper.send(b"whole")
    os.pwrite(memory, b"\xff\xff\xff\xff\xff\xff\xff\x7f", 256)
    os.close(memory)
    with pytest.raises(ValueError, match="corrupt"):
        lower.receive()
    upper.close()
    lower.close()


@pytest.mark.parametrize("first", [1, 1 << 15, 1 << 17, 1 << 19, 1 << 20, LARGEST_FRAME])
def test_an_empty_ring_has_room_for_every_frame(first: int) -> None:
    """Wherever the last one has ended."""
    upper, lower = pair("ring")
    for size in [first, LARGEST_FRAME] * 3 + [first, 1 << 20] * 3:
        assert upper.send(bytes(size))
        assert lower.receive() is not None
        assert lower.receive() is None, "which gives its room back"
    upper.close()
    lower.close()


def test_a_ring_without_room_for_ever_is_noticed() -> None:
    """A wild write has moved the reader's place: nobody may wait for room that never comes."""
    upper_socket, lower_socket = socket.socketpair()
    memory = make_rings()
    upper = open_transport(upper_socket, os.dup(memory), upper=True)
    lower = open_transport(lower_socket, os.dup(memory), upper=False)
    frame = bytes(LARGEST_FRAME)
    for _ in range(4):  # further than a ring is long
        assert upper.send(frame)
        assert lower.receive() is not None
        assert lower.receive() is None, "which gives its room back"
    os.pwrite(memory, bytes(8), 64)
    os.close(memory)
    with pytest.raises(OSError, match="damaged"):
        upper.send(frame)
    lower.close()
    upper.close()


def in_a_fork(body: Callable[[], None]) -> int:
    """Run a function in a forked process that ends with it, and says why if it fails."""
    pid = os.fork()
    if pid == 0:
        try:
            body()
        except BaseException:  # noqa: BLE001 - nothing may go on in this process
            os.write(2, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    return pid


def echo(end: Transport, seed: int) -> None:
    """Answer each frame with itself, spinning for a random moment before each sleep."""
    chance = random.Random(seed)
    while True:
        try:
            frame = hesitant(end, chance)
        except EOFError:
            return
        while not end.send(frame):
            pass


def hesitant(end: Transport, chance: random.Random) -> bytes:
    """Receive a frame; fall asleep at moments as awkward as chance can make them."""
    while True:
        for _ in range(chance.choice((0, 1, 2, 5, 30))):
            frame = end.receive()
            if frame is not None:
                return bytes(frame)
        if end.sleep():
            end.wait(WAIT_S)
            end.wake()


@pytest.mark.parametrize("kind", KINDS)
def test_no_wake_up_is_lost(kind: str) -> None:
    count = int(os.environ.get("ACCEL_LAB_ASKS", "20000"))
    upper, lower = pair(kind)

    def child() -> None:
        upper.close()
        echo(lower, 1)

    pid = in_a_fork(child)
    lower.close()
    chance = random.Random(2)
    for number in range(count):
        assert upper.send(number.to_bytes(8, "big"))
        begun = time.monotonic()
        try:
            answer = hesitant(upper, chance)
        except EOFError:
            pytest.fail(f"it ended at ask {number} with status {os.waitpid(pid, 0)[1]}")
        assert answer == number.to_bytes(8, "big")
        assert time.monotonic() - begun < WAIT_S / 2, f"ask {number} slept through its answer"
    upper.shutdown()
    upper.close()
    os.waitpid(pid, 0)
