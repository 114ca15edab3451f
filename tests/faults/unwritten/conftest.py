"""Failed messages, and who is told of them."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, blas
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.errors import AccelError, DependencyFailed
from tests.faults.conftest import pid_of, settle

WAIT = 60.0
ONES = np.ones((8, 8))


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", devices=1, max_restarts=1000) as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Iterator[Device]:
    yield lab.devices[0]
    with suppress(AccelError, ExceptionGroup):  # what this test has left
        lab.check()


def fail() -> Any:
    raise ValueError("on purpose")


fail.__module__ = "__main__"  # so that it travels by value


def failing_write(gpu: Device, out: AccelRef) -> AccelRef:
    """Write to `out` what is never made; nobody can know before the context does."""
    return blas.gemm(gpu.run(fail), gpu.put(ONES), out=out)


def kill(lab: System, gpu: Device) -> None:
    """End the context from outside, and wait for the next one."""
    mark = lab.events.published
    os.kill(pid_of(lab, gpu), signal.SIGKILL)
    lab.events.wait_for(ContextStarted, WAIT, since=mark)


def hold(gpu: Device, begun: Path, *, pure: bool) -> AccelRef:
    """Hold the context up for good, and every one after it that has this again."""
    held: AccelRef = gpu.run(hold_up, str(begun), pure=pure)
    assert settle(lambda: held.done or any(begun.iterdir()))
    return held


def hold_up(begun: str) -> None:
    import os
    from pathlib import Path

    Path(begun, str(os.getpid())).touch()
    threading.Event().wait()


hold_up.__module__ = "__main__"


def answered(gpu: Device, write: AccelRef) -> AccelRef:
    """Wait until a failure has come, of which nobody is told."""
    gpu.ping().result(WAIT)
    assert write.failed
    return write


def tell(write: AccelRef) -> None:
    with pytest.raises(AccelError):
        write.result(WAIT)


def refused(*readers: AccelRef) -> None:
    for each in readers:
        with pytest.raises(DependencyFailed):
            each.result(WAIT)


def has(ref: AccelRef, expected: Any) -> None:
    np.testing.assert_array_equal(ref.get(timeout_s=WAIT), expected)


@pytest.fixture
def never(gpu: Device) -> AccelRef:
    """Return what is known to have failed."""
    never: AccelRef = gpu.run(fail)
    tell(never)
    return never
