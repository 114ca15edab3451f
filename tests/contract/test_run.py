"""The contract of `run`: what a function returns is a buffer or a value, the same everywhere."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import StaleRef


def total(x: Any) -> Any:
    return x.sum()


def number(x: Any) -> float:
    return float(x.sum())


def test_a_number_that_an_array_gives_is_a_buffer(device: Device) -> None:
    x = device.put(np.arange(4.0))
    answer = device.run(total, x).result(60)
    assert isinstance(answer, AccelRef)
    assert (answer.shape, answer.dtype) == ((), "float64")
    assert float(answer + 1) == 7.0


def test_a_number_of_pythons_is_a_number(device: Device) -> None:
    assert type(device.run(number, device.put(np.arange(4.0))).result(60)) is float


def test_a_value_is_no_operand_and_says_so(device: Device) -> None:
    """Nobody can tell before the function has returned; then it was called freed or lost."""
    answer = device.run(number, device.put(np.arange(4.0)))
    early = answer + 1
    assert answer.result(60) == 6.0
    for sum_ in (early, answer + 1):
        with pytest.raises(StaleRef, match=rf"result of buffer {answer.id} is not an array"):
            sum_.result(60)


def keep(x: Any) -> Any:
    import builtins

    builtins.kept_by_the_test = x  # type: ignore[attr-defined]
    return x


def kept() -> Any:
    import builtins

    return builtins.kept_by_the_test  # type: ignore[attr-defined]


def part_of_kept() -> list[Any]:
    return [kept()[100:200], kept()[::-1]]


def add_to_kept() -> None:
    kept()[:] += 1


def used_bytes(_: Any) -> int:
    import gc

    from accel_lab.compute.execution.buffer_table import BufferTable

    (table,) = (one for one in gc.get_objects() if isinstance(one, BufferTable))
    return table.used_bytes


def test_an_array_that_is_returned_again_is_there_once(device: Device) -> None:
    """It was counted as often as it was returned, until there was no room."""
    nothing = device.put(np.zeros(1))
    before = device.run(used_bytes, nothing).result(60)
    given = device.put(np.arange(1000.0))
    first = device.run(keep, given).result(60)
    again = device.run(kept).result(60)
    part, back = device.run(part_of_kept).result(60)
    assert device.run(used_bytes, nothing).result(60) - before == 8000
    del given, first
    assert device.run(used_bytes, nothing).result(60) - before == 8000
    device.run(add_to_kept).result(60)
    np.testing.assert_array_equal(again.get(), np.arange(1000.0) + 1)
    np.testing.assert_array_equal(part.get(), np.arange(100.0, 200.0) + 1)
    np.testing.assert_array_equal(back.get(), np.arange(1000.0)[::-1] + 1)
    del again, part, back
    for _ in range(2):  # what is freed goes with what is sent next
        device.ping().result(60)
    assert device.run(used_bytes, nothing).result(60) == before
    once_more = device.run(kept).result(60)
    assert device.run(used_bytes, nothing).result(60) - before == 8000
    device.run(keep, None).result(60)
    del once_more


def test_an_answer_of_many_arrays_takes_no_longer_for_each(device: Device) -> None:
    """Each was compared with all before it: eight times as many took 85 times as long."""

    def taken(function: Callable[[int], list[Any]], count: int) -> float:
        began = time.perf_counter()
        answer = device.run(function, count).result(60)
        took = time.perf_counter() - began
        assert len(answer) == count
        assert device.get(answer[-1]).result(60).tolist() == [count - 1] * 3
        return took

    for function in (_apart, _columns):
        small = min(taken(function, 250) for _ in range(3))
        assert min(taken(function, 2000) for _ in range(2)) < 24 * small


def _xp() -> Any:
    import sys

    return sys.modules.get("cupy") or sys.modules["numpy"]


def _apart(count: int) -> list[Any]:
    return [_xp().full(3, i) for i in range(count)]


def _columns(count: int) -> list[Any]:
    whole = _xp().broadcast_to(_xp().arange(count), (3, count)).copy()
    return [whole[:, i] for i in range(count)]
