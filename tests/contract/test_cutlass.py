"""The contract of `libraries.cutlass`: the definition in long double, exact sums, refusals.

GELU is the tanh form of Hendrycks and Gimpel (arXiv 1606.08415). How far a product may be off is
Higham's bound; no end steepens an error by more than 1.13.
"""

import os
import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System, array, cutlass
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from tests.conftest import require
from tests.contract.samples import (
    Layout,
    assert_equal,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import assert_near, wide

STEEPEST = 1.13
EXTRA = 24  # roundings of a bias, a factor and an end
FLOATS = ("float16", "bfloat16", "float32", "float64")
EPILOGUES = st.sampled_from(cutlass.EPILOGUES)

SEARCH_S = 300.0  # a card's kernels of all tiles are compiled one at a time


@pytest.fixture(scope="module", autouse=True)
def _headers(device: Device) -> None:
    """Require CUTLASS's headers, if the device is a card."""
    if device.name.startswith("gpu"):
        require("cutlass")


def end(epilogue: str, x: Any) -> Any:
    if epilogue == "gelu":
        return x / 2 * (1 + np.tanh(np.sqrt(2 / wide(np.pi)) * (x + wide(0.044715) * x**3)))
    return np.where(x > 0, x, 0) if epilogue == "relu" else x


@settings(max_examples=60)
@given(
    seed=seeds,
    shape=st.tuples(*[st.one_of(st.integers(0, 6), st.sampled_from((8, 33, 64, 160)))] * 3),
    dtype=st.sampled_from(FLOATS),
    epilogue=EPILOGUES,
    biased=st.booleans(),
    layout=layouts,
)
def test_a_product_is_scaled_added_to_and_finished(
    device: Device,
    seed: int,
    shape: tuple[int, int, int],
    dtype: str,
    epilogue: cutlass.Epilogue,
    biased: bool,  # noqa: FBT001 - drawn
    layout: Layout,
) -> None:
    m, n, k = shape
    a, b, bias = (
        reals(seed, (m, k), dtype),
        reals(seed + 1, (k, n), dtype),
        reals(seed + 2, (n,), dtype),
    )
    on = [place(device, x, layout) for x in (a, b, bias)]
    got = cutlass.gemm(*on[: 2 + biased], scale=1.5, epilogue=epilogue)
    exact = 1.5 * (wide(a) @ wide(b)) + biased * wide(bias)
    size = 1.5 * (np.abs(wide(a)) @ np.abs(wide(b))) + biased * np.abs(wide(bias))
    assert_near(
        value(device, got),
        end(epilogue, exact),
        dtype,
        magnitude=STEEPEST * size,
        operations=k + EXTRA,
    )


@settings(max_examples=25)
@given(
    seed=seeds,
    shape=st.tuples(*[st.sampled_from((0, 1, 5, 16, 48, 100, 130, 272))] * 3),
    relu=st.booleans(),
    layout=layouts,
)
def test_int8_makes_int32_exactly(
    device: Device,
    seed: int,
    shape: tuple[int, int, int],
    relu: bool,  # noqa: FBT001 - drawn
    layout: Layout,
) -> None:
    m, n, k = shape
    rng = np.random.default_rng(seed)
    shapes = (m, k), (k, n), (n,)
    a, b, bias = (rng.integers(-128, 128, one).astype(np.int8) for one in shapes)
    epilogue: cutlass.Epilogue = "relu" if relu else "identity"
    on = [place(device, x, layout) for x in (a, b, bias)]
    got = cutlass.gemm(*on, epilogue=epilogue, scale=-3)
    exact = -3 * (a.astype(np.int64) @ b.astype(np.int64)) + bias
    assert_equal(value(device, got), (np.maximum(exact, 0) if relu else exact).astype(np.int32))


def test_the_largest_sum_of_int8_fits(device: Device) -> None:
    k = 131_071
    a = array.full(device, (1, k), -128, "int8")
    got = cutlass.gemm(a, array.transpose(a))
    assert value(device, got).tolist() == [[128 * 128 * k]]
    more, column = (array.zeros(device, shape, "int8") for shape in ((1, k + 1), (k + 1, 1)))
    with refused(device, "int8[1, 131072]", "131071", "cut it along k"):
        cutlass.gemm(more, column)
    with refused(device, "int8[1, 131072]", "sums of 65535", "cut it along k"):
        cutlass.gemm(more, column, scale=-2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity_are_as_in_numpy(device: Device, dtype: str) -> None:
    a = reals(0, (4, 8), "float32")
    a[0, 0], a[1, 1], a[2, 2] = np.nan, np.inf, -np.inf
    b = np.abs(reals(1, (8, 8), "float32")) + 1
    got = value(
        device, cutlass.gemm(*(device.put(x).astype(dtype) for x in (a, b)), epilogue="relu")
    )
    got = got.astype(np.float64)
    assert np.isnan(got[0]).all()
    assert np.isposinf(got[1]).all()
    assert (got[2] == 0).all()


def test_out_is_written_wherever_it_lies(device: Device) -> None:
    a, b, bias = (
        small(0, (24, 16), "float32"),
        small(1, (16, 8), "float32"),
        small(2, (8,), "float32"),
    )
    on = [device.put(x) for x in (a, b, bias)]
    around = array.zeros(device, (24, 10), "float32")
    for out in (array.zeros(device, (24, 8), "float32"), array.slice(around, np.s_[:, 1:9])):
        got = cutlass.gemm(*on, out=out)
        assert got.id == out.id
        assert_equal(value(device, out), a @ b + bias)
    left = value(device, around)[:, [0, 9]]
    assert not left.any()


@pytest.mark.parametrize("fill", [(-128, -128), (-128, 127), (127, 127)], ids=str)
@pytest.mark.parametrize("shape", [(130, 272, 700), (129, 131, 513)], ids=str)
def test_extremes_of_int8_are_summed_exactly(
    device: Device, shape: tuple[int, int, int], fill: tuple[int, int]
) -> None:
    """Sums that leave int16, over several stages of a tile, and rows of any length."""
    m, n, k = shape
    a, b = np.full((m, k), fill[0], np.int8), np.full((k, n), fill[1], np.int8)
    a[:, -1], b[:, -1] = 1, -1  # what is beyond an edge would be seen
    exact = (a.astype("float64") @ b.astype("float64")).astype(np.int32)
    assert_equal(value(device, cutlass.gemm(device.put(a), device.put(b))), exact)
    turned = array.transpose(device.put(np.ascontiguousarray(b.T)))
    assert_equal(value(device, cutlass.gemm(device.put(a), turned)), exact)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_a_search_changes_no_product(device: Device, dtype: str) -> None:
    a, b = (device.put(small(seed, (192, 192), dtype)) for seed in (0, 1))
    before = value(device, cutlass.gemm(a, b))
    searched = cutlass.gemm(a, b, search=True)
    searched.result(SEARCH_S)
    assert_equal(value(device, searched), before)  # whole numbers: exactly
    assert_equal(value(device, cutlass.gemm(a, b)), before)


@pytest.mark.parametrize(
    ("dtype", "options", "words"),
    [
        ("float32", {"epilogue": "tanh"}, ("epilogue is 'tanh'", "identity, relu, gelu")),
        ("float32", {"bias": (4,)}, ("float32[4]",)),
        ("float32", {"scale": 1j}, ("scale",)),
        ("int8", {"scale": 200}, ("scale",)),
        ("int8", {"epilogue": "gelu"}, ("no gelu",)),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_name(
    device: Device, dtype: str, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    a, b = array.zeros(device, (3, 4), dtype), array.zeros(device, (4, 8), dtype)
    given_: dict[str, Any] = {
        name: array.zeros(device, one, dtype) if isinstance(one, tuple) else one
        for name, one in options.items()
    }
    with refused(device, "Gemm", *words):
        cutlass.gemm(a, b, **given_)


def test_products_are_there_again_after_a_kill(backend: Any) -> None:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as lab:
        (device,) = lab.devices
        a, b, bias = (
            device.put(reals(s, x, "float32")) for s, x in enumerate(((9, 7), (7, 8), (8,)))
        )
        made = cutlass.gemm(a, b, bias, epilogue="gelu")
        before, mark = value(device, made), lab.events.published
        os.kill(device.run(os.getpid).result(timeout_s=30), signal.SIGKILL)
        fact = lab.events.wait_for(BuffersRebuilt, 60, since=mark)
        assert isinstance(fact, BuffersRebuilt)
        assert fact.lost == 0
        assert_same(value(device, made), before)
