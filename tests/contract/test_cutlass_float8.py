"""Products of float8 by `cutlass`: exact sums, the definition in long double, refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, cutlass
from accel_lab.compute.device import Device
from tests.conftest import require
from tests.contract.samples import Layout, layouts, place, reals, refused, small, value
from tests.contract.tolerances import assert_near, wide

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
COARSE = 2.0**-11
"""How coarsely tensor cores sum 128 products of float8: they keep some 14 bits of the largest."""


@pytest.fixture(scope="module", autouse=True)
def _card(device: Device) -> None:
    """Require CUTLASS's headers and a card of compute capability 9.0, if the device is one."""
    if device.name.startswith("gpu"):
        require("cutlass")
        capability = device.run(_capability).result(60)
        if capability != "90":
            pytest.skip(f"the card's compute capability is {capability}, and it takes 90")


def _capability() -> str:
    import cupy

    return str(cupy.cuda.Device().compute_capability)


@settings(max_examples=40)
@given(
    shape=st.tuples(*[st.one_of(st.integers(0, 9), st.sampled_from((16, 48, 130, 272)))] * 3),
    dtype=st.sampled_from(FLOAT8),
    made=st.sampled_from(("float32", "bfloat16", "float16")),
    layout=layouts,
    biased=st.booleans(),
    scaled=st.booleans(),
    relu=st.booleans(),
)
def test_a_product_is_scaled_added_to_and_finished(
    device: Device,
    shape: tuple[int, int, int],
    dtype: str,
    made: str,
    layout: Layout,
    biased: bool,  # noqa: FBT001 - drawn
    scaled: bool,  # noqa: FBT001 - drawn
    relu: bool,  # noqa: FBT001 - drawn
) -> None:
    """Of small integers and powers of two, so that sums are exact and rounded once."""
    m, n, k = shape
    a, b, bias = small(0, (m, k), dtype), small(1, (k, n), dtype), small(2, (n,), made)
    scales: dict[str, Any] = {}
    if scaled:
        numbers = array.concatenate([array.full(device, (1,), x) for x in (0.5, 4.0)])
        scales = {"scale_a": numbers[0], "scale_b": numbers[1]}
    a_, b_ = (place(device, x, layout) for x in (a, b))
    got = cutlass.scaled_gemm(
        a_,
        b_,
        place(device, bias, layout) if biased else None,
        **scales,
        scale=0.25,
        dtype=made,
        epilogue="relu" if relu else "identity",
    )
    exact = (0.5 if scaled else 0.25) * (a.astype("float64") @ b.astype("float64"))
    exact = exact + biased * bias.astype("float64")
    exact = np.maximum(exact, 0) if relu else exact
    found = value(device, got)
    assert (found.shape, got.dtype) == ((m, n), made)
    rounded = exact.astype("float32").astype(found.dtype)
    np.testing.assert_array_equal(found.astype("float64"), rounded.astype("float64"))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_numbers_of_any_size_are_within_the_tensor_cores_bound(device: Device, dtype: str) -> None:
    a, b = reals(0, (200, 1000), dtype), reals(1, (1000, 300), dtype)
    size = np.abs(wide(a)) @ np.abs(wide(b))
    got = value(device, cutlass.scaled_gemm(*map(device.put, (a, b))))
    coarse = COARSE / 2.0**-23
    assert_near(got, wide(a) @ wide(b), "float32", magnitude=size, operations=coarse)


def test_a_search_changes_no_product(device: Device) -> None:
    a, b = (device.put(small(seed, (192, 192), "float8_e4m3fn")) for seed in (0, 1))
    before = value(device, cutlass.scaled_gemm(a, b))
    np.testing.assert_array_equal(value(device, cutlass.scaled_gemm(a, b, search=True)), before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "float64"}, ("dtype is 'float64'", "float32, bfloat16, float16")),
        ({"epilogue": "tanh"}, ("epilogue is 'tanh'",)),
        ({"bias": (4,)}, ("bias is float32[4]", "float32[8]")),
        ({"scale_a": (1,)}, ("scale_a is float32[1]", "float32[]")),
        ({"scale": 1j}, ("scale",)),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_name(
    device: Device, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    a, b = (array.zeros(device, shape, FLOAT8[0]) for shape in ((3, 4), (4, 8)))
    given_: dict[str, Any] = {
        name: array.zeros(device, one) if isinstance(one, tuple) else one
        for name, one in options.items()
    }
    with refused(device, "ScaledGemm", *words):
        cutlass.scaled_gemm(a, b, **given_)


def test_operands_of_other_dtypes_are_refused(device: Device) -> None:
    a, b, other = (array.zeros(device, (4, 4), dtype) for dtype in (*FLOAT8, "float32"))
    with refused(device, "ScaledGemm", "of one float8", "blas_lt.fused_matmul"):
        cutlass.scaled_gemm(a, b)
    with refused(device, "ScaledGemm", "both are to be float8"):
        cutlass.scaled_gemm(a, other)
