"""Outer, Kronecker, tensor and Einstein products, clipping and closeness, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.device import Device
from accel_lab.libraries.array.message import NUMPYS
from tests.contract.numpys import near, shapes
from tests.contract.samples import layouts, place, reals, refused, seeds, small, value

dtypes = st.sampled_from(sorted(NUMPYS))
few = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@settings(max_examples=80)
@given(data=st.data(), one=few, other=few, seed=seeds, pair=st.tuples(dtypes, dtypes))
def test_outer_and_kronecker_products_are_numpys(
    device: Device, data: st.DataObject, one: Any, other: Any, seed: int, pair: tuple[str, str]
) -> None:
    a, b = small(seed, one, pair[0]), small(seed + 1, other, pair[1])
    x, y = place(device, a, data.draw(layouts)), place(device, b, data.draw(layouts))
    near(device, value(device, array.outer(x, y)), np.outer(a, b))
    near(device, value(device, array.kron(x, y)), np.kron(a, b))
    near(device, value(device, array.kron(a, y)), np.kron(a, b))


@settings(max_examples=100)
@given(
    data=st.data(),
    shape=npst.array_shapes(min_dims=1, max_dims=4, max_side=3, min_side=0),
    seed=seeds,
    pair=st.tuples(dtypes, dtypes),
)
def test_tensor_products_are_numpys_over_any_axes(
    device: Device, data: st.DataObject, shape: Any, seed: int, pair: tuple[str, str]
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    count = data.draw(st.integers(0, len(shape)))
    free = data.draw(st.lists(st.integers(0, 3), max_size=2))
    other = [shape[at] for at in order[:count]] + free
    a, b = small(seed, shape, pair[0]), small(seed + 1, tuple(other), pair[1])
    axes: Any = (list(order[:count]), list(range(count)))
    if count and data.draw(st.booleans()):
        axes = ([at - len(shape) for at in axes[0]], axes[1])
    expected = np.tensordot(a, b, axes)
    x, y = place(device, a, data.draw(layouts)), place(device, b, data.draw(layouts))
    # Sums of a few small integers are exact in every order.
    near(device, value(device, array.tensordot(x, y, axes)), expected)


def test_a_number_of_axes_is_the_last_and_the_first(device: Device) -> None:
    a, b = small(0, (2, 3, 4), "float32"), small(1, (3, 4, 5), "float32")
    x, y = device.put(a), device.put(b)
    near(device, value(device, array.tensordot(x, y)), np.tensordot(a, b))
    near(device, value(device, array.tensordot(x, y, 0)), np.tensordot(a, b, 0))
    with refused(device, "axes [2] of a float32[2, 3, 4] and [0] of b", "differ in extent"):
        array.tensordot(x, y, 1)
    with refused(device, "have no 4 axes to sum"):
        array.tensordot(x, y, 4)
    with refused(device, "an axis is twice"):
        array.tensordot(x, y, ([1, 1], [0, 0]))
    with refused(device, "axis 3 is none of x float32[2, 3, 4]"):
        array.tensordot(x, y, (3, 0))


@settings(max_examples=100)
@given(
    data=st.data(),
    shape=shapes,
    seed=seeds,
    dtype=st.sampled_from(["int8", "uint8", "int64", "float16", "float32", "float64"]),
)
def test_clipping_is_numpys(
    device: Device, data: st.DataObject, shape: Any, seed: int, dtype: str
) -> None:
    x = small(seed, shape, dtype)
    if dtype.startswith("float"):
        x.reshape(-1)[::5] = np.nan
    bound = st.none() | st.sampled_from([0, 1]) | st.just(small(seed + 1, shape, dtype))
    low, high = data.draw(bound), data.draw(bound)
    on = place(device, x, data.draw(layouts))
    near(device, value(device, array.clip(on, low, high)), np.clip(x, low, high))
    near(device, value(device, array.clip(on, low, high, out=on)), np.clip(x, low, high))


FAR = np.array([0, 1, 1 + 1e-6, 1e9, np.nan, np.inf, -np.inf, -0.0])


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_what_is_close_is_numpys(device: Device, dtype: str, equal_nan: bool) -> None:  # noqa: FBT001 - pytest gives it
    a, b = FAR[:, None].astype(dtype), FAR.astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.isclose(a, b, equal_nan=equal_nan)
        x, y = device.put(a), device.put(b)
        near(device, value(device, array.isclose(x, y, equal_nan=equal_nan)), expected)
        near(device, value(device, array.isclose(x, b, equal_nan=equal_nan)), expected)
        for number in (1, 1.0, np.nan, np.inf):
            behind = array.isclose(x, number, equal_nan=equal_nan)
            near(device, value(device, behind), np.isclose(a, number, equal_nan=equal_nan))
            before = array.isclose(number, y, equal_nan=equal_nan)
            near(device, value(device, before), np.isclose(number, b, equal_nan=equal_nan))


def test_integers_are_close_in_floats_and_all_is_one_answer(device: Device) -> None:
    x = np.array([-128, 0, 126], np.int8)
    on = device.put(x)
    assert value(device, array.isclose(on, on)).all()
    assert bool(array.allclose(on, x))
    assert not bool(array.allclose(on, on + 1))
    assert bool(array.allclose(on, on + 1, atol=2))
    assert bool(array.allclose(on, on + 1, 0.5, 1.0))


LETTERS = "ijKl"
EXTENTS = dict(zip(LETTERS, (2, 3, 1, 4), strict=True))


@settings(max_examples=150)
@given(data=st.data(), seed=seeds, count=st.integers(1, 4))
def test_einstein_sums_are_numpys(
    device: Device, data: st.DataObject, seed: int, count: int
) -> None:
    """Sums, diagonals, products, with what broadcasts at dots and at axes of one element."""
    inputs = [data.draw(st.text(LETTERS, max_size=3)) for _ in range(count)]
    dots = [data.draw(st.sampled_from(["", "...", "..."])) for _ in range(count)]
    wide = [data.draw(st.integers(0, 2)) if one else 0 for one in dots]
    xs, on = [], []
    for at, (text, one, more) in enumerate(zip(inputs, dots, wide, strict=True)):
        narrow = {axis for axis in text if text.count(axis) == 1 and data.draw(st.booleans())}
        ends = [1 if axis in narrow else EXTENTS[axis] for axis in text]
        ahead = [2, 3][2 - more :]
        dtype = data.draw(st.sampled_from(["float32", "float32", "int8", "bool", "complex128"]))
        x = np.asarray(small(seed + at, (*ahead, *ends), dtype))
        inputs[at] = one + text
        xs.append(x)
        on.append(place(device, x, data.draw(layouts)))
    named = sorted({*"".join(inputs)} - {"."})
    made = "".join(data.draw(st.permutations(named)))[: data.draw(st.integers(0, len(named)))]
    whole = f"{','.join(inputs)}->{'...' if any(dots) else ''}{made}"
    for subscripts in (whole, whole.partition("->")[0]):
        near(device, value(device, array.einsum(subscripts, *on)), np.einsum(subscripts, *xs))


def test_a_chain_of_products_is_multiplied_in_the_order_that_costs_least(device: Device) -> None:
    a, b, c = reals(0, (30, 2), "float64"), reals(1, (2, 40), "float64"), reals(2, (40,), "float64")
    x, y, z = device.put(a), device.put(b), device.put(c)
    before = device._requests.last_number
    got = array.einsum("ij,jk,k->i", x, y, z)
    assert device._requests.last_number == before + len(("b @ c", "a @ (b @ c)"))
    np.testing.assert_allclose(value(device, got), a @ b @ c, rtol=1e-12, atol=1e-13)
    turned = array.einsum("ij->ji", x)
    turned[0] = 7.0
    assert set(value(device, x)[:, 0]) == {7.0}


def test_what_is_no_einstein_sum_is_refused(device: Device) -> None:
    x = device.put(np.zeros((2, 3)))
    for subscripts, words in {
        "ij,jk": "is of 2 operands, not of 1",
        "i": "'i' are not the axes of float64[2, 3]",
        "ijk...": "'ijk...' are not the axes of float64[2, 3]",
        "i1": "has in 'i1' other than letters",
        "ii": "axis i of float64[2, 3] has two lengths",
        "ij->k": "'k' has an axis twice, or one that no operand has",
        "ij->ii": "'ii' has an axis twice",
        "i...->i": "has ... in operands, and not in the result",
    }.items():
        with refused(device, words):
            array.einsum(subscripts, x)
    with refused(device, "axis i of float64[2, 3] has 2 elements, and 3 of another operand"):
        array.einsum("ji,ij", x, x)
    with refused(device, "subscripts are text"):
        array.einsum(x, [0, 1])  # type: ignore[arg-type]
