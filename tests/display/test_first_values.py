"""What a displayed handle says of its values: fetched for a display alone, and never waited for."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.lib import pretty

from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.display.buffer_number import short, unannounced
from accel_lab.system import System

WAIT_S = 20.0


@pytest.fixture
def gpu() -> Iterator[Device]:
    with System("host", devices=1, name="values") as lab:
        yield lab.devices[0]


def displayed(shown: Any) -> tuple[str, str]:
    """Return what a notebook shows of the last value of a cell: as text, and as HTML."""
    formatter: Any = DisplayFormatter()
    forms, _ = formatter.format(shown)
    return forms["text/plain"], forms["text/html"]


def rest(gpu: Device) -> None:
    """Wait until the device has nothing to do."""
    end = time.monotonic() + WAIT_S
    while gpu.in_flight:
        assert time.monotonic() < end
        time.sleep(0.001)


def held(gpu: Device, array: Any) -> AccelRef:
    ref = gpu.put(array).result()
    rest(gpu)
    return ref


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


def test_a_displayed_handle_shows_its_first_and_last_values(gpu: Device) -> None:
    ref = held(gpu, np.arange(10_000, dtype="i4").reshape(100, 100))
    before = gpu.last_number
    text, html = displayed(ref)
    assert text.splitlines()[1:] == [
        "  first values: [0, 1, 2, 3, 4, 5]",
        "  last values: [9997, 9998, 9999]",
    ]
    assert '<th scope="row">first values</th><td>[0, 1, 2, 3, 4, 5]</td>' in html
    assert gpu.last_number == before + 1, "both forms are of one fetch"


def test_few_values_are_shown_in_their_shape(gpu: Device) -> None:
    text, _ = displayed(held(gpu, np.array([[1.5, 2], [3, 4]], "f4")))
    assert text.splitlines()[1:] == ["  values: [[1.5, 2], [3, 4]]"]
    assert displayed(held(gpu, np.float64(7)))[0].endswith("  values: 7")
    assert displayed(held(gpu, np.ones((0, 3))))[0].endswith("  values: none")


def test_values_come_in_c_order_however_they_lie(gpu: Device) -> None:
    ref = held(gpu, np.arange(1_000_000, dtype="i4").reshape(1000, 1000)).T
    ref.result()
    rest(gpu)
    text, _ = displayed(ref)
    assert "[0, 1000, 2000, 3000, 4000, 5000]" in text
    assert "[997999, 998999, 999999]" in text


@pytest.mark.parametrize("dtype", NAMES)
def test_every_dtype_is_shown(gpu: Device, dtype: str) -> None:
    ref = gpu.put(np.ones(100, "f4")).astype(dtype)
    ref.result()
    rest(gpu)
    text, _ = displayed(ref)
    assert "first values: [" in text


def test_what_is_not_done_and_a_device_at_work_are_not_asked(
    gpu: Device, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ref = held(gpu, np.ones(100))
    request.addfinalizer((tmp_path / "go").touch)
    running = gpu.run(wait_for, tmp_path / "go")
    coming = ref + 1
    before = gpu.last_number
    assert "values: not fetched: cpu0 is busy" in displayed(ref)[0]
    assert "values: not fetched: it is not done yet" in displayed(coming)[0]
    assert gpu.last_number == before
    (tmp_path / "go").touch()
    running.result(WAIT_S)
    coming.result(WAIT_S)
    rest(gpu)
    assert "<td>[2, 2, 2, 2, 2, 2]</td>" in displayed(coming)[1]


def test_a_device_that_does_not_answer_is_waited_for_a_moment(gpu: Device) -> None:
    ref = held(gpu, np.ones(100))
    pid = gpu.run(os.getpid).result(WAIT_S)
    rest(gpu)
    os.kill(pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        text, _ = displayed(ref)
        assert time.monotonic() - begin < 5.0
        assert "values: not fetched: cpu0 took more than 0.25 s" in text
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_device_that_is_suspended_stays_so(gpu: Device) -> None:
    ref = held(gpu, np.ones(100))
    gpu.suspend()
    assert "values: not fetched: cpu0 is suspended" in displayed(ref)[0]
    assert gpu.state == "suspended"


def in_a_container(ref: Any) -> str:
    printer: Any = pretty
    return str(printer.pretty([ref] * 1000))


@pytest.mark.parametrize("draw", [repr, str, in_a_container, lambda ref: ref.label])
def test_a_repr_and_a_container_ask_nothing(gpu: Device, draw: Callable[[Any], str]) -> None:
    ref = held(gpu, np.ones(100))
    before = gpu.last_number
    assert "float64[100]" in draw(ref)
    assert gpu.last_number == before


def test_what_a_function_makes_has_a_short_number(gpu: Device) -> None:
    first, second = gpu.run(lambda: (np.ones(3), np.zeros(4))).result(WAIT_S)
    assert first.id == unannounced(1, 1)
    assert repr(first) == "<AccelRef float64[3] on cpu0, buffer f1 of generation 1, made>"
    assert second.label == "#f2 float64[4]"
    assert "buffer f1" in repr(gpu.resident)
    second.free()
    with pytest.raises(Exception, match="buffer f2 was freed"):
        gpu.get(second)
    total = gpu.run(np.sum, first, writes=())
    total.result(WAIT_S)
    told = repr(gpu._system.journal[-6:])  # type: ignore[attr-defined]
    assert "refs=#f1" in told
    for drawn in (told, repr(gpu.resident), *displayed(first)):
        assert str(first.id) not in drawn


def test_short_numbers_tell_generations_apart() -> None:
    numbers = [3, unannounced(1, 7), unannounced(2, 7), unannounced(12, 345)]
    assert list(map(short, numbers)) == ["3", "f7", "f7g2", "f345g12"]
