"""What a sample says that the one before it has not said."""

import time
from pathlib import Path

import msgspec
import pytest

from accel_lab import System
from accel_lab.compute.samples import MemorySampled, Slice, TreeSampled, WorkTraced
from accel_lab.views.repeats import REPEATING, repeats, subject
from tests.views.feeds import connect, facts

GEMM = Slice(1, "Gemm", "blas", "kernel", 1.0, 2.0)
IDLE = WorkTraced(device="gpu0", generation=1, done=(), running=(), at=5.0)
FULL = MemorySampled(device="gpu0", generation=1, used_bytes=8, total_bytes=16, blocks=(), at=5.0)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (IDLE, {"done": (GEMM,)}),
        (IDLE, {"dropped": 1}),
        (IDLE, {"running": (GEMM,)}),
        (IDLE, {"generation": 2}),
        (FULL, {"used_bytes": 9}),
        (FULL, {"stale": ((1, ("x",)),)}),
    ],
)
def test_only_when_it_was_taken_is_no_news(
    before: WorkTraced | MemorySampled, change: dict[str, object]
) -> None:
    assert repeats(msgspec.structs.replace(before, at=6.0), before)
    assert not repeats(msgspec.structs.replace(before, at=6.0, **change), before)


def test_work_that_is_done_is_news_each_time() -> None:
    done = msgspec.structs.replace(IDLE, done=(GEMM,))
    assert not repeats(done, done)
    assert repeats(msgspec.structs.replace(IDLE, at=6.0), done)
    assert not repeats(IDLE, None)


def test_an_idle_system_is_told_once_a_second_and_work_at_once(runtime: Path) -> None:
    with System("host", devices=1, name="idle") as lab, connect(runtime) as reader:
        lab.ready()
        reader.settimeout(0.1)

        def hear(seconds: float) -> list[REPEATING]:
            data, until = b"", time.monotonic() + seconds
            while time.monotonic() < until:
                try:
                    data += reader.recv(1 << 20)
                except TimeoutError:
                    continue
            return [one for one in facts(data.split(b"\n")[1:-1]) if isinstance(one, REPEATING)]

        hear(2.0)
        told = hear(4.0)
        for kind in (TreeSampled, MemorySampled, WorkTraced):
            assert 2 <= sum(isinstance(one, kind) for one in told) <= 5, kind
        assert {subject(one)[1] for one in told} == {"", "cpu0"}
        done, until = False, time.monotonic() + 20
        while not done and time.monotonic() < until:
            lab.devices[0].put([1.0]).get(timeout_s=20)
            done = any(isinstance(one, WorkTraced) and one.done for one in hear(0.5))
        assert done
