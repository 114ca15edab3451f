"""Products with `@`, against NumPy."""

import operator
from itertools import product

import numpy as np
import pytest

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, canonical
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array.products import Matmul
from tests.contract.numpys import NARROW, numpys
from tests.contract.samples import refused, small, value

PRODUCTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
)


@pytest.mark.parametrize(("left", "right"), PRODUCTS, ids=str)
def test_products_have_numpys_shapes_in_every_dtype(
    device: Device, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """Of one dtype, the product has that dtype; sums of small integers are exact."""
    for dtype in NAMES:
        x, y = small(0, left, dtype), small(1, right, dtype)
        got = value(device, device.put(x) @ device.put(y))
        exact = np.matmul(*(a.astype(np.float32) if dtype in NARROW else a for a in (x, y)))
        np.testing.assert_array_equal(got, exact.astype(x.dtype))
        assert got.dtype == x.dtype
        assert got.shape == exact.shape


def test_products_of_two_dtypes_promote(device: Device) -> None:
    for left, right in product(NAMES, NAMES):
        if left == right:
            continue
        x, y = small(0, (2, 3), left), small(1, (3, 2), right)
        expected = numpys(operator.matmul, x, y)
        ours: AccelRef = device.put(x) @ device.put(y)
        assert ours.dtype == canonical(expected.dtype)
        np.testing.assert_array_equal(value(device, ours), expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (((6, 1, 2, 3), "float32"), ((5, 3, 4), "float32")),
        (((5, 2, 3), "float64"), ((3,), "float64")),
        (((2, 3), "int32"), ((3, 4), "float32")),
        (((5, 2, 3), "complex64"), ((3, 4), "float64")),
        (((5, 2, 3), "bfloat16"), ((3,), "bfloat16")),
        (((5, 2, 3), "int16"), ((3, 4), "int16")),
        (((2, 0), "int8"), ((0, 3), "float16")),
    ],
    ids=str,
)
def test_products_that_blas_has_not_are_recorded_in_graphs(
    device: Device, left: tuple[tuple[int, ...], str], right: tuple[tuple[int, ...], str]
) -> None:
    """With the results that they have when they are sent, for operands that change."""
    operands = [[small(2 * at, *left), small(2 * at + 1, *right)] for at in range(3)]
    a, b = map(device.put, operands[0])
    with device.graph(a=a, b=b) as recorded:
        made = device.ask(Matmul(a, b))
    for x, y in operands:
        ours: AccelRef = device.ask(Matmul(device.put(x), device.put(y)))
        recorded.launch(a=device.put(x), b=device.put(y))
        np.testing.assert_array_equal(value(device, made), value(device, ours))
        np.testing.assert_array_equal(value(device, ours), numpys(operator.matmul, x, y))
    recorded.close()


def test_products_that_do_not_fit_are_refused(device: Device) -> None:
    x, number = array.zeros(device, (2, 3)), array.zeros(device, ())
    stacks = array.zeros(device, (2, 2, 2)), array.zeros(device, (3, 2, 2))
    with refused(device, "inner extents 3 and 2 differ", "float32[2, 3]"):
        _ = x @ x
    with refused(device, "multiply with *"):
        _ = x @ 2
    with refused(device, "multiply with *"):
        _ = x @ number
    with refused(device, "leading axes"):
        _ = operator.matmul(*stacks)
