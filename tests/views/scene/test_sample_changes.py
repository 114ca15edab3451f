"""What a sample says that the one before it has not said."""

import time
from pathlib import Path

import msgspec
import pytest

from accel_lab import System
from accel_lab.compute.events.samples import MemorySampled, Slice, TreeSampled, WorkTraced
from accel_lab.views.scene.sample_changes import REPEATING, repeats, subject
from tests.views.feed.feeds import connect, facts

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
        rest = b""

        def hear(seconds: float) -> list[REPEATING]:
            nonlocal rest
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                try:
                    rest += reader.recv(1 << 20)
                except TimeoutError:
                    continue
            *lines, rest = rest.split(b"\n")
            return [one for one in facts(lines) if isinstance(one, REPEATING)]

        hear(2.0)
        told = hear(4.0)
        for kind in (TreeSampled, MemorySampled, WorkTraced):
            assert 2 <= sum(isinstance(one, kind) for one in told) <= 5, kind
        assert {subject(one)[1] for one in told} == {"", "cpu0"}
        in_a_row, until = 0, time.monotonic() + 20
        while in_a_row < 3 and time.monotonic() < until:  # one a second may be by chance
            lab.devices[0].put([1.0]).get(timeout_s=20)
            done = any(isinstance(one, WorkTraced) and one.done for one in hear(0.5))
            in_a_row = in_a_row + 1 if done else 0
        assert in_a_row == 3
