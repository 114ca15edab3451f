"""An axis or index that an array does not have is an IndexError; a diagonal may be anywhere."""

from collections.abc import Callable

import numpy as np
import pytest

from accel_lab import AccelRef, array
from accel_lab.compute.device import Device
from accel_lab.errors import OutOfBounds
from tests.contract.samples import assert_same, refused, value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x[2], "index 2 is outside axis 0 of x float64[2, 3]"),
        (lambda x: x[0, 0, 0], "names 3 axes, but x is float64[2, 3]"),
        (lambda x: x[[0], 0, 0], "the index has 3 axes"),
        (lambda x: array.sum(x, 2), "axis 2 is none of x float64[2, 3]"),
        (lambda x: array.sort(x, -3), "axis -3 is none of x"),
        (lambda x: array.flip(x, 2), "axis 2 is none of x"),
        (lambda x: array.expand_dims(x, 3), "axis 3 is none of 3 axes"),
    ],
)
def test_what_is_out_of_bounds_is_an_index_error(
    device: Device, call: Callable[[AccelRef], AccelRef], words: str
) -> None:
    x = device.put(np.ones((2, 3)))
    with refused(device, words, error=OutOfBounds):
        call(x)
    assert issubclass(OutOfBounds, IndexError)


def test_a_mask_of_another_shape_is_an_index_error(device: Device) -> None:
    x, mask = device.put(np.ones((2, 3))), device.put(np.ones(3, bool))
    with refused(device, "mask is bool[3]", error=OutOfBounds):
        x[mask]


def test_a_diagonal_far_outside_is_none(device: Device) -> None:
    """Beyond 32 bits NumPy takes no offset."""
    x = np.ones((2, 3))
    for k in (2**31, -(2**31) - 1, 2**62, -(2**62)):
        assert value(device, array.diagonal(device.put(x), k)).size == 0
        assert not value(device, array.eye(device, 2, 3, k)).any()
        assert_same(value(device, array.tril(device.put(x), k)), x * (k > 0))
        assert_same(value(device, array.triu(device.put(x), k)), x * (k < 0))
