"""The contract of `libraries.sparse` on 2:4 structured matrices: by the definition."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, sparse
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.declared import Support
from tests.contract.samples import (
    Layout,
    assert_equal,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    value,
)
from tests.contract.tolerances import assert_near, wide

DTYPES = ("bfloat16", "float16", "float32", "float64")
extents = st.sampled_from((0, 1, 5, 16))


@settings(max_examples=60)
@given(
    seed=seeds, m=extents, fours=extents, n=extents, dtype=st.sampled_from(DTYPES), layout=layouts
)
def test_the_largest_two_of_four_are_kept_and_multiplied(
    device: Device,
    support: Support,
    seed: int,
    m: int,
    fours: int,
    n: int,
    dtype: str,
    layout: Layout,
) -> None:
    if dtype not in support["sparse.Prune24"]:
        return
    x, b = reals(seed, (m, 4 * fours), dtype), reals(seed + 1, (4 * fours, n), dtype)
    x[:, ::3] = 1  # equal ones
    expected = np.zeros_like(x)
    for row, begin in np.ndindex(m, fours):
        four = x[row, 4 * begin : 4 * begin + 4]
        largest = sorted(range(4), key=lambda at: (-abs(float(four[at])), at))[:2]
        expected[row, [4 * begin + at for at in largest]] = four[largest]
    on_x, on_b = place(device, x, layout), place(device, b, layout)
    pruned = sparse.prune24(on_x)
    assert_same(value(device, pruned), expected)
    assert bool(value(device, sparse.check24(pruned)))
    assert bool(value(device, sparse.check24(on_x))) == bool((expected == x).all())
    packed = sparse.compress24(pruned)
    assert (packed.shape, packed.values.shape) == (x.shape, (m, 2 * fours))
    places = value(device, packed.places).reshape(m, fours, 2)
    assert (places[..., 0] < places[..., 1]).all()
    exact, size = wide(expected) @ wide(b), np.abs(wide(expected)) @ np.abs(wide(b))
    got = value(device, packed @ on_b)
    assert_near(got, exact, dtype, magnitude=size, operations=4 * fours)


def test_a_nan_is_kept_and_a_zero_makes_room(device: Device) -> None:
    x = device.put(np.array([[0, np.nan, 3, -4], [0, 0, 0, 5.0]]))
    assert_equal(value(device, sparse.prune24(x)), np.array([[0, np.nan, 0, -4], [0, 0, 0, 5]]))
    packed = sparse.compress24(device.put(np.array([[0, 0, 0, 5.0]])))
    assert value(device, packed.places).tolist() == [[0, 3]]
    assert value(device, packed.values).tolist() == [[0, 5]]


def test_three_of_four_fail_by_their_row(device: Device) -> None:
    packed = sparse.compress24(device.put(np.array([[1.0, 2, 0, 0], [1, 2, 3, 0]])))
    with pytest.raises(InvalidArgument, match=r"row 1 has more than two.*prune24"):
        packed.values.result(30)


def test_mistakes_are_refused(device: Device) -> None:
    x, b = array.zeros(device, (2, 8)), array.zeros(device, (6, 3))
    packed, wrong = sparse.compress24(x), array.zeros(device, (2, 6))
    dense: Any = x
    for send in (sparse.prune24, sparse.check24, sparse.compress24):
        with refused(device, "x is float32[2, 6]", "multiple of 4"):
            send(wrong)
    with refused(device, "Matmul24: b is float32[6, 3]", "8 rows"):
        packed @ b
    with refused(device, "Matmul24: a is AccelRef", "compress24"):
        sparse.matmul24(dense, b)
    with refused(device, "places are float32[2, 4]", "uint8"):
        device.ask(sparse.Matmul24(packed.values, packed.values, x))
