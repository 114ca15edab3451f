"""Floats of less than 32 bits against PyTorch, which rounds by code of its own.

NumPy's bfloat16 and float8 are those of ml_dtypes, which the host backend computes with itself.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from tests.conftest import require
from tests.contract.products import Case, Support, cases
from tests.contract.samples import place, reals, seeds, value
from tests.contract.tolerances import assert_near, wide

HALVES = ("bfloat16", "float16")
NARROW = (*HALVES, "float8_e4m3fn", "float8_e5m2")
EXACT = ("add", "subtract", "multiply", "divide")
"""Operations that IEEE 754 rounds once, so that not one bit may differ."""


@pytest.fixture(autouse=True, scope="module")
def torch() -> Any:
    require("torch")
    return import_module("torch")


def tensor(torch: Any, x: Any) -> Any:
    """Return an array as a tensor, whose bits are the same."""
    bits = torch.from_numpy(x.view(f"int{8 * x.itemsize}"))
    return bits.view(getattr(torch, str(x.dtype)))


def numbers(torch: Any, one: Any) -> Any:
    """Return a tensor as an array, whose bits are the same."""
    dtype = numpy_dtype(str(one.dtype).removeprefix("torch."))
    return one.view(getattr(torch, f"int{8 * dtype.itemsize}")).numpy().view(dtype)


def every(dtype: str) -> Any:
    """Return every number of a dtype, the infinite ones too, and none that is no number."""
    bits = 8 * numpy_dtype(dtype).itemsize
    found = np.arange(2**bits, dtype=f"uint{bits}").view(numpy_dtype(dtype))
    return found[~np.isnan(found.astype(np.float32))]


@pytest.mark.parametrize("dtype", NARROW)
def test_every_number_is_widened_as_pytorch_does(device: Device, torch: Any, dtype: str) -> None:
    x = every(dtype)
    got = value(device, array.cast(device.put(x), "float32"))
    np.testing.assert_array_equal(got, tensor(torch, x).float().numpy(), strict=True)


@pytest.mark.parametrize("dtype", NARROW)
def test_what_lies_between_two_numbers_is_rounded_as_pytorch_does(
    device: Device, torch: Any, dtype: str
) -> None:
    """Half-way between two neighbours, which goes to the even one, and a hair beside it."""
    finite = every(dtype).astype(np.float32)
    finite = np.unique(finite[np.isfinite(finite)])
    middle = ((finite[:-1].astype(float) + finite[1:]) / 2).astype(np.float32)
    beside = [np.nextafter(middle, np.float32(way)) for way in (-np.inf, np.inf)]
    x = np.concatenate([finite, middle, *beside])
    got = value(device, array.cast(device.put(x), dtype))
    expected = numbers(torch, torch.from_numpy(x).to(getattr(torch, dtype)))
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("op", EXACT)
@pytest.mark.parametrize("dtype", HALVES)
@settings(max_examples=20)
@given(seed=seeds)
def test_arithmetic_is_pytorchs_to_the_last_bit(
    device: Device, torch: Any, dtype: str, op: str, seed: int
) -> None:
    x, y = reals(seed, (40,), dtype), reals(seed + 1, (40,), dtype)
    y = np.where(y == 0, 1, y).astype(y.dtype)
    ours: Callable[[Any, Any], Any] = getattr(array, op)
    got = value(device, ours(device.put(x), device.put(y)))
    expected = numbers(torch, getattr(torch, op)(tensor(torch, x), tensor(torch, y)))
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("op", ["exp", "sin", "sqrt", "tanh"])
@pytest.mark.parametrize("dtype", HALVES)
def test_a_function_of_each_element_is_pytorchs_within_a_rounding(
    device: Device, torch: Any, dtype: str, op: str
) -> None:
    x = np.abs(reals(3, (500,), dtype))
    got = value(device, getattr(array, op)(device.put(x)))
    expected = numbers(torch, getattr(torch, op)(tensor(torch, x)))
    assert_near(got, wide(expected), dtype)


@pytest.mark.parametrize("dtype", HALVES)
@settings(max_examples=20)
@given(case=cases(least=1), scale=st.sampled_from([1.0, 0.25]))
def test_gemm_is_pytorchs_within_rounding(
    device: Device, support: Support, torch: Any, dtype: str, case: Case, scale: float
) -> None:
    if dtype not in support["blas.Gemm"]:
        return
    a, b, _ = case.operands(reals, dtype)
    ref = blas.gemm(
        place(device, a, case.layout),
        place(device, b, case.layout),
        alpha=scale,
        trans_a=case.trans_a,
        trans_b=case.trans_b,
    )
    left, right = (tensor(torch, np.ascontiguousarray(x)) for x in case.turned(a, b))
    expected = wide(numbers(torch, left @ right)) * scale
    terms = np.abs(wide(left.float())) @ np.abs(wide(right.float())) * scale
    assert_near(value(device, ref), expected, dtype, magnitude=terms, operations=2 * case.k)
