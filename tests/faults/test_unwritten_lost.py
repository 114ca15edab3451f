"""What was not written is refused to the same messages, however many contexts are lost."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, blas
from accel_lab.errors import AccelError, DependencyFailed
from tests.faults.test_unwritten import ONES, WAIT, fail

WIDE = np.ones((9, 8))


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", devices=1, max_restarts=1000) as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Iterator[Device]:
    yield lab.devices[0]
    with suppress(AccelError, ExceptionGroup):  # what this test has left
        lab.check()


def refused(*readers: AccelRef) -> None:
    for each in readers:
        with pytest.raises(DependencyFailed):
            each.result(WAIT)


def has(ref: AccelRef, expected: Any) -> None:
    np.testing.assert_array_equal(ref.get(timeout_s=WAIT), expected)


def suspend(_: System, gpu: Device) -> None:
    gpu.suspend()
    gpu.resume()


@pytest.mark.parametrize("nexts", [[suspend], [suspend, suspend]])
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
