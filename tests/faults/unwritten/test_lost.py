"""What was not written is refused to the same messages, however many contexts are lost."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, blas
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.compute.recovery.recovery import Recovery
from accel_lab.errors import ContextLost
from tests.faults.conftest import pid_of, settle
from tests.faults.unwritten.conftest import (
    ONES,
    WAIT,
    answered,
    fail,
    failing_write,
    has,
    hold,
    hold_up,
    kill,
    refused,
    tell,
)

WIDE = np.ones((9, 8))


@pytest.mark.parametrize("losses", [1, 2, 3])
def test_what_was_sent_before_the_release_is_refused_again(
    lab: System, gpu: Device, tmp_path: Path, losses: int
) -> None:
    """And what was sent behind it is not, though the release was in flight."""
    a, b = gpu.put(ONES), gpu.put(ONES)
    before = a + b
    write_a, write_b = answered(gpu, failing_write(gpu, a)), answered(gpu, failing_write(gpu, b))
    holds = [hold(gpu, tmp_path, pure=losses > 1)]
    holds += [gpu.run(hold_up, str(tmp_path), pure=True) for _ in range(losses - 2)]
    early_a, early_b = a + 1, b + 1
    tell(write_a)
    late_a, between = a + 2, b + 2
    tell(write_b)
    late = a + b
    for loss in range(losses):
        assert settle(lambda: len(list(tmp_path.iterdir())) > loss)  # noqa: B023 - at once
        kill(lab, gpu)
    has(before, ONES + ONES)
    refused(early_a, early_b, between)
    has(late_a, ONES + 2)
    has(late, ONES + ONES)
    has(a + b, ONES + ONES)
    for each in holds:
        with pytest.raises(ContextLost):
            each.result(WAIT)


@pytest.mark.parametrize("pure", [True, False])
def test_a_buffer_that_was_not_written_twice_is_refused_twice(
    lab: System, gpu: Device, tmp_path: Path, *, pure: bool
) -> None:
    """The second failure is still to come when the context is lost; `pure` ones come again."""
    out = gpu.put(ONES)
    first = answered(gpu, failing_write(gpu, out))
    hold(gpu, tmp_path, pure=False)
    refused_first = out + 1
    tell(first)
    usable = out + 2
    second = blas.gemm(gpu.run(fail, pure=pure), gpu.put(ONES), out=out)
    refused_second = out + 3
    kill(lab, gpu)
    refused(refused_first)
    has(usable, ONES + 2)
    refused(refused_second)
    tell(second)
    has(out + 4, ONES + 4)


def test_who_is_told_after_the_loss_changes_nothing_for_what_was_sent_before(
    lab: System, gpu: Device, tmp_path: Path
) -> None:
    """The release may wait for the next context, which has the reader first."""
    out = gpu.put(ONES)
    write = answered(gpu, failing_write(gpu, out))
    hold(gpu, tmp_path, pure=False)
    reader = out + 1
    os.kill(pid_of(lab, gpu), signal.SIGKILL)
    tell(write)
    late = out + 2
    refused(reader)
    has(late, ONES + 2)


def test_it_is_released_once_in_the_next_context_too(
    lab: System, gpu: Device, tmp_path: Path
) -> None:
    """Nothing is in flight behind the release, and what comes then finds the buffer as it was."""
    out = gpu.put(ONES)
    write = answered(gpu, failing_write(gpu, out))
    hold(gpu, tmp_path, pure=False)
    reader = out + 1
    tell(write)
    gpu.ping()
    kill(lab, gpu)
    has(out + 2, ONES + 2)
    refused(reader)


@pytest.mark.parametrize("losses", [0, 1])
def test_what_waits_for_a_context_is_refused_by_its_place(
    lab: System, gpu: Device, never: AccelRef, losses: int
) -> None:
    """A write that was refused while the device was suspended concerns what comes behind it."""
    out, other = gpu.put(ONES), gpu.put(ONES)
    gpu.suspend()
    mark = lab.events.published
    new = gpu.put(ONES)
    before = out + 1
    writes = [blas.gemm(never, other, out=each) for each in (out, new)]
    behind = out + 2, new + 2
    for write in writes:
        tell(write)
    late = out + 3, new + 3
    if losses:
        lab.events.wait_for(ContextStarted, WAIT, since=mark)
        kill(lab, gpu)
    has(before, ONES + 1)
    refused(*behind)
    for each in late:
        has(each, ONES + 3)


def test_what_shares_memory_is_refused_by_what_waits(
    lab: System, gpu: Device, never: AccelRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write was refused, and its handle dropped, before the next context was there."""
    base, other = gpu.put(WIDE), gpu.put(ONES)
    view = base[1:].result(WAIT)
    lost, go, wait = threading.Event(), threading.Event(), Recovery._wait_for_the_old

    def slowly(recovery: Recovery, turn: int) -> None:
        lost.set()
        assert go.wait(WAIT)
        wait(recovery, turn)

    monkeypatch.setattr(Recovery, "_wait_for_the_old", slowly)
    os.kill(pid_of(lab, gpu), signal.SIGKILL)
    assert lost.wait(WAIT)
    before = base + 1
    blas.gemm(never, other, out=view)
    del view
    behind = base + 2
    go.set()
    has(before, WIDE + 1)
    refused(behind)
    has(base + 3, WIDE + 3)


def suspend(_: System, gpu: Device) -> None:
    gpu.suspend()
    gpu.resume()


@pytest.mark.parametrize(
    "nexts", [[kill], [kill, kill], [suspend], [suspend, kill], [kill, suspend]]
)
@pytest.mark.parametrize("dropped", ["view", "base", "none"])
def test_what_shares_memory_is_refused_by_the_next_context(
    lab: System, gpu: Device, dropped: str, nexts: list[Callable[[System, Device], None]]
) -> None:
    """Also where the handle is gone that the failed message had."""
    refs = {"base": gpu.put(WIDE), "none": gpu.put(ONES)}
    refs["view"], other, unconcerned = refs["base"][1:], refs["base"][:8], refs["none"]
    written = refs["base" if dropped == "base" else "view"]
    blas.gemm(gpu.run(fail), unconcerned, out=written)
    del refs[dropped], written
    for each in nexts:
        gpu.ping().result(WAIT)
        each(lab, gpu)
    has(unconcerned + 1, ONES + 1)
    refused(other + 1)  # which tells of it
    has(other + 1, ONES + 1)


def test_what_shares_memory_with_what_a_lost_context_did_not_write_is_refused(
    lab: System, gpu: Device
) -> None:
    """The handle that was given to the function is gone before the context is."""
    base = gpu.put(WIDE)
    fault = _die_at(gpu, base[1:])
    behind = base + 1
    refused(behind)
    has(base + 2, WIDE + 2)
    assert isinstance(fault.error, ContextLost)


def _die_at(gpu: Device, view: AccelRef) -> AccelRef:
    fault: AccelRef = gpu.run(_die, view, writes=(view,))
    return fault


def _die(_: Any) -> None:
    import os

    os.kill(os.getpid(), 9)


_die.__module__ = "__main__"
