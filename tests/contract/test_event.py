"""Events: points in a device's work, in its order, told apart by the clock, gone with a context."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, blas, event, jit
from accel_lab.compute.device import Device
from accel_lab.errors import (
    ContextReplaced,
    DependencyFailed,
    InvalidArgument,
    NotAnArray,
    StaleRef,
)
from tests.contract.samples import refused

WAIT_S = 60.0


@pytest.fixture(scope="module")
def pair(backend: Any) -> Iterator[list[Device]]:
    """Two devices of one system, which may lose their contexts."""
    name = backend.__name__.rpartition(".")[2]
    if name == "cuda" and backend.device_count() < 2:
        pytest.skip("needs two cards")
    with System(name, devices=2, max_restarts=20) as lab:
        yield lab.devices


def test_the_time_between_is_that_of_the_work_between(device: Device) -> None:
    start = event.record(device)
    began = time.perf_counter()
    start.result()
    device.run(time.sleep, 0.05)
    middle = event.record(device)
    device.run(time.sleep, 0.02)
    end = event.record(device)
    event.synchronize(end).result(WAIT_S)
    whole_ms = (time.perf_counter() - began) * 1e3
    assert event.query(end).result() is True
    first, second, both = (
        event.elapsed(*two) for two in ((start, middle), (middle, end), (start, end))
    )
    assert first >= 49.9
    assert second >= 19.9
    assert both == pytest.approx(first + second, rel=1e-3)
    assert both <= whole_ms + 1.0
    assert event.elapsed(end, start) == pytest.approx(-both)
    assert event.elapsed(end, end) == 0.0


def test_a_moment_is_a_time_of_day(device: Device) -> None:
    before = time.time()
    at = event.moment(event.record(device, "blas")).result(WAIT_S)
    assert before - 0.1 <= at <= time.time() + 0.1


def test_streams_that_wait_compute_what_they_did(device: Device) -> None:
    x = np.arange(12.0).reshape(3, 4)
    on = device.put(x)
    made = blas.gemm(on, on, trans_b="t")
    done = event.record(device, "blas")
    for stream in ("array", "run", "download", ""):
        assert event.wait(done, stream=stream).result(WAIT_S) is None
    np.testing.assert_array_equal(array.add(made, 1.0).get(), x @ x.T + 1.0)
    assert device.run(np.shape, x).result() == (3, 4)


@pytest.mark.usefixtures("compiling")
def test_what_is_compiled_beside_comes_before(device: Device) -> None:
    unseen = f"// {time.time_ns()}"  # so that no cache has it
    source = f'extern "C" __global__ void f(float *x) {{ x[0] += 1.f; }} {unseen}'
    kernel = jit.compile(device, source, "f")
    x = device.put(np.zeros(1, "float32"))
    launched = kernel(1, 1, (x,))
    behind = event.record(device)
    event.synchronize(behind).result(WAIT_S)
    assert kernel.done
    assert launched.result(WAIT_S) is None
    assert x.get().tolist() == [1.0]


def test_another_device_goes_on_behind_it(pair: list[Device]) -> None:
    first, second = pair
    ended = first.run(_sleep_and_tell)
    reached = event.record(first)
    waited = event.wait(reached, second)
    began = second.run(time.time)
    assert began.result(WAIT_S) >= ended.result(WAIT_S)
    assert waited.result(WAIT_S) is None
    later = event.record(second)
    assert event.elapsed(reached, later) >= -1.0  # two devices are compared by the time of day


def test_an_event_goes_with_its_context(pair: list[Device]) -> None:
    first, second = pair
    lost, kept = event.record(first), event.record(second)
    lost.result(WAIT_S)
    assert "of its moment" in lost.durability.why
    working = first.run(time.sleep, 30.0)
    pending = event.synchronize(event.record(first))
    held = event.wait(event.record(first), second)
    first.replace()
    for reply in (pending, working):
        with pytest.raises((ContextReplaced, StaleRef)):
            reply.result(WAIT_S)
    with pytest.raises(DependencyFailed):
        held.result(WAIT_S)
    with pytest.raises(StaleRef, match="of its moment"):
        event.query(lost).result(WAIT_S)
    with pytest.raises(StaleRef):
        event.elapsed(lost, kept)
    assert event.query(kept).result(WAIT_S) is True
    assert event.query(event.record(first)).result(WAIT_S) in (True, False)
    assert second.put(np.ones(2)).sum().get() == 2.0


def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device) -> None:
    made, buffer = event.record(device), device.put(np.ones(2))
    with refused(device, "Record: stream is 'cublas'", "blas"):
        event.record(device, "cublas")
    with refused(device, "Wait: stream is 'cufft'", "fft"):
        event.wait(made, stream="cufft")
    with refused(device, "Query", "event", "Handle"):
        event.query(buffer)  # type: ignore[arg-type]
    with pytest.raises(NotAnArray):
        made + 1  # type: ignore[operator]
    with device.graph(), refused(device, "of its moment"):
        event.record(device)


def test_another_device_does_not_wait_by_halves(pair: list[Device]) -> None:
    first, second = pair
    with refused(second, "'blas' of", "leave stream out"):
        event.wait(event.record(first), second, "blas")
    with pytest.raises(InvalidArgument, match="device"):
        event.record("cpu0")  # type: ignore[arg-type]


def _sleep_and_tell() -> float:
    time.sleep(0.2)
    return time.time()
