"""Products of pairs of matrices of any shapes by `cutlass`, against NumPy one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, cutlass
from accel_lab.compute.device import Device
from tests.conftest import require
from tests.contract.samples import Layout, layouts, place, refused, small, value

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8")


@pytest.fixture(scope="module", autouse=True)
def _headers(device: Device) -> None:
    """Require CUTLASS's headers, if the device is a card."""
    if device.name.startswith("gpu"):
        require("cutlass")


@settings(max_examples=40)
@given(
    shapes=st.lists(
        st.tuples(*[st.one_of(st.integers(0, 9), st.sampled_from((16, 40, 136)))] * 3),
        min_size=1,
        max_size=5,
    ),
    layout=layouts,
    dtype=st.sampled_from(DTYPES),
    biased=st.booleans(),
    relu=st.booleans(),
)
def test_each_is_the_product_of_its_pair(
    device: Device,
    shapes: list[tuple[int, int, int]],
    layout: Layout,
    dtype: str,
    biased: bool,  # noqa: FBT001 - drawn
    relu: bool,  # noqa: FBT001 - drawn
) -> None:
    """Of small integers, so that every order of summing is exact."""
    triples = [
        (
            small(3 * at, (m, k), dtype),
            small(3 * at + 1, (k, n), dtype),
            small(3 * at + 2, (n,), dtype),
        )
        for at, (m, k, n) in enumerate(shapes)
    ]
    a, b, bias = ([place(device, one[side], layout) for one in triples] for side in range(3))
    epilogue: cutlass.Epilogue = "relu" if relu else "identity"
    made = cutlass.grouped_gemm(a, b, bias if biased else (), scale=2, epilogue=epilogue)
    for ref, (left, right, vector) in zip(made, triples, strict=True):
        expected = 2 * (left.astype("float64") @ right.astype("float64"))
        expected += biased * vector.astype("float64")
        expected = np.maximum(expected, 0) if relu else expected
        assert (ref.shape, ref.dtype) == (expected.shape, "int32" if dtype == "int8" else dtype)
        np.testing.assert_array_equal(value(device, ref).astype("float64"), expected)


def test_pairs_that_lie_differently_go_together(device: Device) -> None:
    whole = [(small(at, (64, 32), "float16"), small(at + 9, (32, 48), "float16")) for at in (0, 1)]
    ragged = small(2, (24, 31), "float16"), small(3, (31, 20), "float16")
    a = [device.put(whole[0][0]), array.transpose(device.put(whole[1][0].T.copy()))]
    b = [device.put(whole[0][1]), array.transpose(device.put(whole[1][1].T.copy()))]
    made = cutlass.grouped_gemm([*a, device.put(ragged[0])], [*b, device.put(ragged[1])])
    for ref, (left, right) in zip(made, (*whole, ragged), strict=True):
        np.testing.assert_array_equal(value(device, ref), left @ right)


def test_many_products_have_more_tiles_than_a_card_takes_at_once(device: Device) -> None:
    rng = np.random.default_rng(0)
    pairs = [
        (small(at, (m, 16), "float32"), small(at + 100, (16, n), "float32"))
        for at, (m, n) in enumerate(rng.integers(1, 400, (40, 2)).tolist())
    ]
    made = cutlass.grouped_gemm(*([device.put(pair[side]) for pair in pairs] for side in (0, 1)))
    for ref, (left, right) in zip(made, pairs, strict=True):
        np.testing.assert_array_equal(value(device, ref), left @ right)


def test_what_does_not_fit_is_refused_by_its_number(device: Device) -> None:
    a, b, bias = (array.zeros(device, shape) for shape in ((2, 3), (3, 4), (4,)))
    short, doubles = array.zeros(device, (3,)), array.zeros(device, (3, 4), "float64")
    with refused(device, "GroupedGemm: a[1] is float32[2, 3] and b[1] is float32[2, 3]"):
        cutlass.grouped_gemm([a, a], [b, a])
    with refused(device, "GroupedGemm: a has 2 matrices and b has 1", "in pairs"):
        cutlass.grouped_gemm([a, a], [b])
    with refused(device, "GroupedGemm: bias has 1 vectors", "2 matrices"):
        cutlass.grouped_gemm([a, a], [b, b], [bias])
    with refused(device, "GroupedGemm: bias[1] is float32[3]", "[4]"):
        cutlass.grouped_gemm([a, a], [b, b], [bias, short])
    with refused(device, "GroupedGemm takes operands of one dtype", "array.cast"):
        cutlass.grouped_gemm([a], [doubles])
    wrong: Any = "tanh"
    with refused(device, "GroupedGemm: epilogue is 'tanh'"):
        cutlass.grouped_gemm([a], [b], epilogue=wrong)
    narrow = array.zeros(device, (2, 3), "int8"), array.zeros(device, (3, 4), "int8")
    with refused(device, "GroupedGemm", "no gelu"):
        cutlass.grouped_gemm(*([one] for one in narrow), epilogue="gelu")
