"""What readers of a feed cost, above all those that are slow."""

import contextlib
import gc
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.compute.events.lifecycle import CircuitOpened
from accel_lab.compute.events.samples import Slice, WorkTraced
from accel_lab.views.feed import feed
from accel_lab.views.feed import reader as feed_reader
from accel_lab.views.feed.client import Watch
from accel_lab.views.feed.feed import FEED
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.scene import Scene
from tests.held import descriptors
from tests.views.feed.feeds import connect, facts
from tests.views.feed.processes import eventually
from tests.views.made_up import Lab

pytestmark = pytest.mark.usefixtures("runtime")


def test_a_reader_that_never_reads_loses_samples_and_is_told_so_when_it_reads(
    lab: Lab, runtime: Path
) -> None:
    work = Slice(seq=1, name="Gemm" * 20, stream="blas", kind="kernel", start=3.0, end=3.5)
    many = WorkTraced(device="gpu0", generation=1, done=(work,) * 1000, running=())
    with connect(runtime) as reader:
        eventually(lambda: bool(FEED.shown()[0]._observer))
        sent = 0
        server = FEED._server
        assert server is not None
        while not any(one.lost > 3 for one in server._readers):
            lab.seen.append(many)
            sent += 1
            eventually(lambda: not lab.seen)
        lab.events.publish(CircuitOpened(device="gpu0", cause="4 losses"))
        eventually(lambda: observer_of(lab).scene.counted)
        assert all(
            len(one.unread) < feed_reader.UNREAD_BYTES + (1 << 20) for one in server._readers
        )
        scene, told, rest = Scene(), b"", b""
        while b"CircuitOpened" not in told or b'{"lost"' not in told or scene.traced == 0:
            rest += reader.recv(1 << 20)
            *lines, rest = rest.split(b"\n")
            told += b"\n".join(line[:40] for line in lines)
            for fact in facts(lines):
                scene.add(fact)
        lab.seen.append(WorkTraced(device="gpu0", generation=1, done=(work,), running=()))
        while scene.traced + scene.untraced.get("gpu0", 0) < sent * 1000 + 1:
            rest += reader.recv(1 << 20)
            *lines, rest = rest.split(b"\n")
            for fact in facts(lines):
                scene.add(fact)
    assert 0 < scene.untraced["gpu0"] < sent * 1000


def test_a_reader_that_leaves_too_much_unread_is_hung_up_on_and_gets_it_all_anew(
    lab: Lab, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_reader, "HANG_UP_BYTES", 300_000)
    with connect(runtime):
        server = FEED._server
        assert server is not None
        eventually(lambda: server._readers)
        for number in range(700):
            lab.events.publish(CircuitOpened(device="gpu0", cause=f"{number}" * 400))
        eventually(lambda: not server._readers)
    watch = Watch()
    eventually(lambda: watch.sources() and watch.sources()[0].look().counted == 700)
    watch.close()


@pytest.mark.timeout(120)
def test_a_reader_that_never_reads_neither_slows_messages_nor_takes_memory(runtime: Path) -> None:
    def rate(lab: System) -> float:
        gpu = lab.devices[0]
        x = gpu.put(np.ones(16, "float32"))
        began = time.perf_counter()
        for _ in range(2000):
            x = blas.scal(x, 1.0)
        gpu.get(x).result()
        return 2000 / (time.perf_counter() - began)

    with System("host") as lab:
        rate(lab)
        # Rounds alternate: what else the machine does meets both.
        alone: list[float] = []
        watched: list[float] = []
        kept: list[int] = []
        for turn in range(20):
            if turn >= 5 and max(watched) > 0.6 * max(alone):
                break
            alone.append(rate(lab))
            with connect(runtime):
                eventually(lambda: FEED.shown()[0]._observer)
                watched.append(rate(lab))
                server = FEED._server
                assert server is not None
                kept.append(len(server._readers[0].unread))
            eventually(lambda: not FEED.shown()[0]._observer)
    assert max(watched) > 0.6 * max(alone)
    assert max(kept) < feed_reader.UNREAD_BYTES + (1 << 20)


def test_memory_is_bounded_however_long_nobody_reads(lab: Lab, runtime: Path) -> None:
    work = Slice(seq=1, name="Gemm" * 50, stream="blas", kind="kernel", start=3.0, end=3.5)
    many = WorkTraced(device="gpu0", generation=1, done=(), running=(work,) * 2000, dropped=1)
    with connect(runtime):
        eventually(lambda: FEED.shown()[0]._observer)
        server = FEED._server
        assert server is not None
        lab.seen = [many] * 30
        eventually(lambda: any(one.lost > 10 for one in server._readers))

        def held() -> int:
            for _ in range(5):
                lab.seen = [many] * 30
                eventually(lambda: not lab.seen)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        first = held()
        assert held() - first < 5_000_000  # 75 MB were to be sent
        tracemalloc.stop()


def test_fifty_readers_come_and_go_and_leave_no_descriptor(lab: Lab, runtime: Path) -> None:
    with connect(runtime) as first:
        first.recv(10)
    eventually(lambda: not FEED.shown()[0]._observer)
    before = descriptors()
    for number in range(50):
        with connect(runtime) as reader:
            if number % 2:
                reader.recv(10)
    eventually(lambda: not descriptors() - before and not FEED.shown()[0]._observer)
    assert observer_of(lab).followers == []


def test_there_is_room_for_sixteen(lab: Lab, runtime: Path) -> None:
    readers = [connect(runtime) for _ in range(feed.READERS)]
    assert all(one.recv(5) == b'{"fee' for one in readers)
    with connect(runtime) as one_more:
        assert one_more.recv(5) == b""
    for one in readers:
        one.close()


def test_a_reader_that_speaks_is_hung_up_on(lab: Lab, runtime: Path) -> None:
    with connect(runtime) as reader:
        reader.sendall(b"hello")
        with contextlib.suppress(ConnectionResetError):
            while reader.recv(1 << 16):
                pass
