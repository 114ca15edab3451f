"""The contract of `run`: what a function returns is a buffer or a value, the same everywhere."""

from typing import Any

import numpy as np

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.device import Device


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
