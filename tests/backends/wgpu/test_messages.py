"""Messages on wgpu against NumPy: axes from the back, and operands of two dtypes."""

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
