"""Who is told of one failed write of a buffer is not told of another."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, blas
from accel_lab.errors import (
    ContextLost,
    DeadlineExceeded,
    DependencyFailed,
    OutOfMemory,
)
from tests.compute.requests.test_pipeline import Latch
from tests.faults.unwritten.conftest import (
    ONES,
    WAIT,
    answered,
    fail,
    failing_write,
    has,
    kill,
    refused,
    tell,
)


def fail_otherwise() -> Any:
    raise RuntimeError("otherwise")


fail_otherwise.__module__ = "__main__"  # so that it travels by value


@pytest.mark.parametrize("soon", [True, False])
@pytest.mark.parametrize("same", [True, False])
def test_one_that_is_refused_here_tells_nothing_of_one_before_it(
    gpu: Device, never: AccelRef, tmp_path: Path, *, soon: bool, same: bool
) -> None:
    """However soon the failure of that one comes."""
    out, ones = gpu.put(ONES), gpu.put(ONES)
    other = out if same else out.T.result(WAIT)
    latch = Latch(gpu, tmp_path / "gate")
    first = blas.gemm(gpu.run(fail), ones, out=out)
    if soon:
        latch.release()
        answered(gpu, first)
    tell(blas.gemm(never, ones, out=other))
    reader = out + 1
    if not soon:
        latch.release()
    refused(reader)
    has(out + 2, ONES + 2)  # its reader has told of it
    tell(first)


@pytest.mark.parametrize("told", [0, 1])
@pytest.mark.parametrize("same", [True, False])
def test_of_two_in_flight_each_is_told_by_itself(gpu: Device, told: int, *, same: bool) -> None:
    out, ones = gpu.put(ONES), gpu.put(ONES)
    other = out if same else out.T.result(WAIT)
    writes = [
        blas.gemm(gpu.run(fail), ones, out=out),
        blas.gemm(gpu.run(fail_otherwise), ones, out=other),
    ]
    answered(gpu, writes[-1])
    tell(writes.pop(told))
    refused(out + 1)
    has(out + 2, ONES + 2)
    tell(writes[0])


def test_who_was_told_of_both_can_use_it(gpu: Device) -> None:
    out, ones = gpu.put(ONES), gpu.put(ONES)
    writes = [blas.gemm(gpu.run(one), ones, out=out) for one in (fail, fail_otherwise)]
    for write in writes:
        tell(write)
    has(out + 1, ONES + 1)


def test_one_that_is_refused_behind_what_was_told_is_told_by_itself(
    gpu: Device, never: AccelRef
) -> None:
    """Though nothing was sent in between."""
    out, ones = gpu.put(ONES), gpu.put(ONES)
    alias = failing_write(gpu, out)
    tell(alias)
    blas.gemm(never, ones, out=out)
    refused(out + 1)
    has(out + 2, ONES + 2)
    tell(blas.gemm(ones, ones, out=alias))
    has(out + 3, ONES + 3)


def test_one_for_which_there_was_no_room_is_told_by_itself() -> None:
    """It would have been refused, too, had there been room."""
    with System("host", memory_bytes=4 << 20) as lab:
        gpu = lab.devices[0]
        square = np.ones((512, 256))
        away, *there = [gpu.put(square) for _ in range(5)]  # one has to give way
        writes = [gpu.run(_fail_at, each, writes=(each,)) for each in there]
        second = blas.axpy(away, there[0], out=there[0])
        tell(writes[0])
        refused(there[0].sum())
        tell(writes[1])
        has(there[1].sum(), square.sum())
        with pytest.raises(OutOfMemory):
            second.result(WAIT)


def _fail_at(_: Any) -> None:
    raise ValueError("on purpose")


_fail_at.__module__ = "__main__"


@pytest.mark.parametrize("before", [True, False])
def test_what_needs_what_was_never_made_fails_for_that(gpu: Device, *, before: bool) -> None:
    """Whatever else it names that was not written."""
    out = gpu.put(ONES)
    failing_write(gpu, out)
    operands = [out, gpu.run(fail_otherwise)]
    with pytest.raises(DependencyFailed, match="otherwise"):
        blas.gemm(*operands[:: 1 if before else -1], out=gpu.put(ONES)).result(WAIT)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("told", [0, 1])
def test_of_two_that_a_lost_context_had_each_is_told_by_itself(
    gpu: Device, told: int, *, same: bool
) -> None:
    """The first has taken too long; so the second was lost with its context."""
    out = gpu.put(ONES)
    view = out if same else out.T.result(WAIT)
    writes = [
        gpu.run(_hang, out, writes=(out,), timeout_s=0.2),
        gpu.run(_hang, view, writes=(view,)),
    ]
    with pytest.raises((DeadlineExceeded, ContextLost)[told]):
        writes.pop(told).result(WAIT)
    refused(out + 1)
    has(out + 2, ONES + 2)
    tell(writes[0])


def _hang(_: Any) -> None:
    import threading

    threading.Event().wait()


_hang.__module__ = "__main__"


@pytest.mark.parametrize("told", [0, 1])
def test_the_next_context_too_refuses_it_until_both_are_told(
    lab: System, gpu: Device, never: AccelRef, told: int
) -> None:
    out, ones = gpu.put(ONES), gpu.put(ONES)
    writes = [answered(gpu, failing_write(gpu, out)), blas.gemm(gpu.run(fail), ones, out=out)]
    answered(gpu, writes[1])
    writes.append(blas.gemm(never, ones, out=out))
    tell(writes.pop(told))
    gpu.ping().result(WAIT)
    kill(lab, gpu)
    tell(writes[0])
    gpu.suspend()
    reader = out + 1
    refused(reader)
    has(out + 2, ONES + 2)


@pytest.mark.parametrize("known", [True, False])
def test_a_loop_that_fails_for_one_reason_is_refused_for_one(
    lab: System, gpu: Device, *, known: bool
) -> None:
    """Else a program that does not look would cost more with each message."""
    out, ones, never = gpu.put(ONES), gpu.put(ONES), gpu.run(fail)
    if known:
        tell(never)
    writes = [blas.gemm(never, ones, out=out) for _ in range(50)]
    gpu.ping().result(WAIT)
    with pytest.raises(DependencyFailed) as caught:
        (out + 1).result(WAIT)
    assert len(caught.value.unwritten) == 1
    tell(writes[0])
    has(out + 2, ONES + 2)
    kill(lab, gpu)
    has(out + 3, ONES + 3)
