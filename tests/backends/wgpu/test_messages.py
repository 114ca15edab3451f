"""Messages on wgpu against NumPy: axes from the back, and operands of two dtypes."""

from typing import Any

import numpy as np

from accel_lab import array
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device


def test_shifts_and_comparisons_of_two_dtypes_are_numpys(device: Device) -> None:
    x, y = np.array([1, 5, -7, 100]), np.array([2, 40, 1, 70], np.int8)
    for op in ("left_shift", "right_shift"):
        got = getattr(array, op)(device.put(x), device.put(y)).get()
        np.testing.assert_array_equal(got, getattr(np, op)(x, y))
    narrow = np.array([1, 2.5, -7, 100]).astype(numpy_dtype("bfloat16"))
    for other in (x.astype("int16"), x, x.astype("float16")):
        got = array.equal(device.put(other), device.put(narrow)).get()
        np.testing.assert_array_equal(got, np.equal(other, narrow))


def test_axes_are_counted_from_the_back_too(device: Device) -> None:
    x = np.random.default_rng(3).standard_normal((3, 4, 5))
    on, at = device.put(x), np.array([3, 0, -1, 2])
    for axis in (-1, -2, -3):
        places = at[:3] % x.shape[axis]
        np.testing.assert_array_equal(
            array.take(on, device.put(places), axis).get(), np.take(x, places, axis)
        )
        order = np.argsort(x, axis)
        along = array.take_along_axis(on, device.put(order), axis)
        np.testing.assert_array_equal(along.get(), np.sort(x, axis))
    for q in (0, 0.3, [0.5, 1]):
        got = array.quantile(on, q, -1).get()
        np.testing.assert_allclose(got, np.quantile(x, q, -1), rtol=1e-14)


def test_functions_compute_with_arrays_as_with_numpys(device: Device) -> None:
    """On the host; what they write in place is on the device."""
    x = np.arange(6.0).reshape(2, 3)
    on = device.put(x.copy())

    def change(held: Any) -> Any:
        assert len(held) == 2
        held *= 2
        held[0] += held[1]
        np.subtract(held, 1, out=held, where=held > 5)
        held[held < 3] = -1
        held[1:, [0, 2]] = held[:1, [2, 0]]
        return held.sum(), (held.T @ held if hasattr(held, "T") else held.transpose() @ held)

    total, product = device.run(change, on).result(60)
    x *= 2
    x[0] += x[1]
    x[x > 5] -= 1
    x[x < 3] = -1
    x[1:, [0, 2]] = x[:1, [2, 0]]
    np.testing.assert_array_equal(on.get(), x)
    assert total == x.sum()
    np.testing.assert_array_equal(product.get(), x.T @ x)
