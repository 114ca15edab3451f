"""The contract of `cutlass.fused_gemm`: the user's end in long double, two results, refusals."""

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
from accel_lab.errors import CompileError, DependencyFailed
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

FLOATS = ("float16", "bfloat16", "float32", "float64")
EXTRA = 24  # roundings of an end
SOURCE = """
template <class T> __device__ T plain(T sum, T scale) { return scale * sum; }
template <class T> __device__ T gated(T sum, T c, T row, T column, T scale, T shift, T& aux) {
  aux = scale * sum + row;
  T kept = aux > T(0) ? aux : T(0);
  return kept * c + shift * column;
}
template <class T> __device__ T of_row(T sum, T row) { return sum - row; }
template <class T> __device__ T of_column(T sum, T column, T& aux) {
  aux = column;
  return sum - column;
}
namespace inner { template <class T, int N> T times(T sum) { return N * sum; } }
"""


@pytest.fixture(scope="module", autouse=True)
def _headers(device: Device) -> None:
    """Require CUTLASS's headers, if the device is a card."""
    if device.name.startswith("gpu"):
        require("cutlass")


extents = st.tuples(*[st.one_of(st.integers(0, 6), st.sampled_from((8, 33, 64, 160)))] * 3)


@settings(max_examples=40)
@given(seed=seeds, shape=extents, dtype=st.sampled_from(FLOATS), layout=layouts)
def test_each_element_is_ended_by_the_function(
    device: Device, seed: int, shape: tuple[int, int, int], dtype: str, layout: Layout
) -> None:
    m, n, k = shape
    shapes = (m, k), (k, n), (m, n), (n,), (m,)
    a, b, c, row, column = (reals(seed + at, one, dtype) for at, one in enumerate(shapes))
    on = [place(device, x, layout) for x in (a, b, c, row, column)]
    got = cutlass.fused_gemm(
        on[0], on[1], "gated", *on[2:], source=SOURCE, numbers=(1.5, -0.25), aux=True
    )
    aux = 1.5 * (wide(a) @ wide(b)) + wide(row)
    size = 1.5 * (np.abs(wide(a)) @ np.abs(wide(b))) + np.abs(wide(row))
    shifted = wide(column)[:, None] / 4
    assert got.aux is not None
    assert_near(value(device, got.aux), aux, dtype, magnitude=size, operations=k + EXTRA)
    assert_near(
        value(device, got.product),
        np.maximum(aux, 0) * wide(c) - shifted,
        dtype,
        magnitude=size * np.abs(wide(c)) + np.abs(shifted),
        operations=k + EXTRA,
    )


def whole(device: Device, shape: tuple[int, int], dtype: str) -> tuple[list[Any], list[Any]]:
    """Return a, b, row and column of small whole numbers, which sum exactly, and their buffers."""
    m, n = shape
    arrays = [small(at, one, dtype) % 3 for at, one in enumerate(((m, 16), (16, n), (n,), (m,)))]
    return [x.astype("f8") for x in arrays], [device.put(x) for x in arrays]


def ended(device: Device, *given: Any, **options: Any) -> list[Any]:
    """Return both results of a product in double."""
    made = cutlass.fused_gemm(*given, source=SOURCE, **options)
    return [None if ref is None else value(device, ref).astype("f8") for ref in made]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(70, 24), (70, 23), (300, 272)], ids=str)
def test_rows_of_any_length_are_written_by_tiles(
    device: Device, dtype: str, shape: tuple[int, int]
) -> None:
    (a, b, _, column), (left, right, _, down) = whole(device, shape, dtype)
    product, second = ended(device, left, right, "of_column", None, None, down, aux=True)
    assert_equal(product, a @ b - column[:, None])
    assert_equal(second, np.broadcast_to(column[:, None], shape))


def test_a_function_is_given_what_there_is(device: Device) -> None:
    (a, b, row, _), (left, right, along, _) = whole(device, (70, 24), "float32")
    product, none = ended(device, left, right, "plain", numbers=(np.float32(-2),))
    assert none is None
    assert_equal(product, -2 * (a @ b))
    assert_equal(ended(device, left, right, "of_row", None, along)[0], a @ b - row)
    # A comma of a template's parameters is none of the call's.
    assert_equal(ended(device, left, right, "inner::times<float, 3>")[0], 3 * (a @ b))


def test_other_operands_and_numbers_need_nothing_compiled(device: Device) -> None:
    """A refit: what is compiled depends on the source and on which operands there are."""
    a, b = (small(seed, (24, 24), "float32") for seed in (0, 1))
    # A function of this test alone, so that the first call compiles it.
    source = f"float refit(float sum, float by) {{ return by * sum; }} // {device.name}"
    for number, (left, right) in ((1, (a, b)), (2, (b, a)), (-3, (a + 1, b - 1))):
        on = device.put(left), device.put(right)
        made = cutlass.fused_gemm(*on, "refit", source=source, numbers=(number,))
        assert_equal(value(device, made.product), number * (left @ right))


def test_what_does_not_compile_says_why(device: Device) -> None:
    a = array.zeros(device, (4, 4), "float32")
    wrong = "float plain(float sum) { return nothing; }"
    for made in (
        cutlass.fused_gemm(a, a, "plain", source=wrong),
        cutlass.fused_gemm(a, a, "of_row", source=SOURCE),  # it takes a row, and none is given
    ):
        with pytest.raises((CompileError, DependencyFailed)) as failed:
            value(device, made.product)
        error = failed.value
        cause = error if isinstance(error, CompileError) else error.__cause__
        assert isinstance(cause, CompileError)
        assert cause.name in ("plain", "of_row")
        assert f"{cause.name} does not compile" in str(cause)
    assert value(device, cutlass.gemm(a, a)).sum() == 0  # the actor is well


def test_what_does_not_fit_is_refused_by_name(device: Device) -> None:
    a, b, wrong = (array.zeros(device, shape, "float32") for shape in ((3, 4), (4, 8), (4,)))
    doubles = array.zeros(device, (3, 8), "float64")
    narrow = array.zeros(device, (4, 4), "int8")
    short: Any = "plain", None, None

    def fused(*given: Any, source: Any = SOURCE, **options: Any) -> None:
        cutlass.fused_gemm(a, b, *given, source=source, **options)

    with refused(device, "FusedGemm", "float32[4]"):
        fused("plain", None, wrong)
    with refused(device, "FusedGemm", "float32[4]"):
        fused(*short, wrong)
    with refused(device, "FusedGemm", "float32[3, 4]"):
        fused("plain", a)
    with refused(device, "FusedGemm takes operands of one dtype", "array.cast"):
        fused("plain", doubles)
    with refused(device, "FusedGemm", "nothing in source is called other"):
        fused("other")
    with refused(device, "FusedGemm", "without source there is no function"):
        fused("plain", source="")
    with refused(device, "FusedGemm", "name of a function"):
        fused("1 + 1;")
    with refused(device, "FusedGemm", "numbers has 9; at most 8"):
        fused("plain", numbers=range(9))
    with refused(device, "FusedGemm", "numbers"):
        fused("plain", numbers=(1j,))
    with refused(device, "FusedGemm", "int8"):
        cutlass.fused_gemm(narrow, narrow, "plain", source=SOURCE)


def test_products_are_there_again_after_a_kill(backend: Any) -> None:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as lab:
        (device,) = lab.devices
        a, b, row = (
            device.put(reals(s, x, "float32")) for s, x in enumerate(((9, 7), (7, 8), (8,)))
        )
        made = cutlass.fused_gemm(a, b, "of_row", None, row, source=SOURCE).product
        before, mark = value(device, made), lab.events.published
        os.kill(device.run(os.getpid).result(timeout_s=30), signal.SIGKILL)
        fact = lab.events.wait_for(BuffersRebuilt, 60, since=mark)
        assert isinstance(fact, BuffersRebuilt)
        assert fact.lost == 0
        assert_same(value(device, made), before)
