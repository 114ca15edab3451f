"""Buffers made of a few numbers, against NumPy and Python's own integers."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import UnsupportedDtype
from accel_lab.libraries.array.message import NUMPYS
from accel_lab.libraries.authoring.operand import RANGES
from tests.contract.numpys import DTYPES, near
from tests.contract.samples import Layout, assert_same, layouts, place, refused, seeds, small, value


@given(
    dtype=st.sampled_from(sorted(RANGES)),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    count=st.integers(1, 40),
)
@example(dtype="int64", ends=(1.0, 0.0), count=1)
@example(dtype="int64", ends=(0.0, 1.0), count=1)
@example(dtype="uint64", ends=(1.0, 0.0), count=1)
@example(dtype="uint64", ends=(1.0, 1.0), count=1)
def test_a_range_of_integers_is_pythons_in_every_dtype(
    device: Device, dtype: str, ends: tuple[float, float], count: int
) -> None:
    low, high = RANGES[dtype]
    first, last = (low + int(Fraction(end) * (high - low)) for end in ends)
    step = (last - first) // count or 1
    stop = last + (1 if step > 0 else -1) if (last > first) is (step > 0) else first
    expected = [*range(first, stop, step)]
    got = value(device, array.arange(device, first, stop, step, dtype))
    assert_same(got, np.array(expected, dtype))


@given(
    start=st.floats(-1e6, 1e6),
    step=st.floats(-100, 100).filter(lambda by: abs(by) > 1e-3),
    count=st.integers(0, 200),
    dtype=st.sampled_from(["float16", "float32", "float64", "complex64", "complex128"]),
)
def test_an_element_is_start_and_steps_in_float64_rounded_once(
    device: Device, start: float, step: float, count: int, dtype: str
) -> None:
    message = array.Arange(count, start, step, dtype)
    with np.errstate(over="ignore"):
        expected = (start + np.arange(count) * step).astype(dtype)
    assert_same(value(device, device.ask(message)), expected)


RANGES_OF: list[tuple[Any, ...]] = [
    (5,),
    (0,),
    (-3,),
    (2, 9),
    (2, 9, 3),
    (9, 2, -3),
    (9, 2),
    (1.5,),
    (0, 1, 0.1),
    (1, 0, -0.25),
    (np.int8(3), np.float32(5.5)),
    (True, 4),
]


@pytest.mark.parametrize("given_", RANGES_OF, ids=str)
def test_arange_has_numpys_length_and_dtype(device: Device, given_: tuple[Any, ...]) -> None:
    plain = [one.item() if isinstance(one, np.generic) else one for one in given_]
    got = value(device, array.arange(device, *given_))
    expected = np.arange(*plain)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    near(device, value(device, array.arange(device, 6, dtype="int8")), np.arange(6, dtype="int8"))


def test_a_range_that_is_none_is_refused(device: Device) -> None:
    with refused(device, "no number of elements"):
        array.arange(device, 1, 2, 0)
    with refused(device, "no number of elements"):
        array.arange(device, float("nan"))
    with refused(device, "0.5", "int32 has integers only"):
        array.arange(device, 0.5, 3, dtype="int32")
    with refused(device, "256 is no uint8, which has 0 to 255"):
        array.arange(device, 257, dtype="uint8")
    with refused(device, "1j is no real number"):
        array.arange(device, 1j)
    with refused(device, "array.Arange of bfloat16", error=UnsupportedDtype):
        array.arange(device, 3, dtype="bfloat16")
    with refused(device, "a shape is a tuple of integers"):
        device.ask(array.Arange(-1))
    with refused(device, "start must be an int or a float, not 'a'"):
        device.ask(array.Arange(2, "a"))  # type: ignore[arg-type]


@given(
    ends=st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)),
    num=st.integers(0, 60),
    endpoint=st.booleans(),
    dtype=st.sampled_from([None, *sorted(NUMPYS - {"uint64", "uint32", "uint16", "uint8"})]),
)
def test_linspace_is_numpys(
    device: Device,
    ends: tuple[float, float],
    num: int,
    endpoint: bool,  # noqa: FBT001 - hypothesis gives it
    dtype: Any,
) -> None:
    if dtype in ("int8", "int16", "int32", "float16"):
        ends = (ends[0] % 100, ends[1] % 100)
    expected, step = np.linspace(*ends, num, endpoint=endpoint, retstep=True, dtype=dtype)
    got, by = array.linspace(device, *ends, num, endpoint=endpoint, retstep=True, dtype=dtype)
    assert_same(value(device, got), np.asarray(expected))
    np.testing.assert_equal(by, float(step))


def test_linspace_needs_numbers(device: Device) -> None:
    with refused(device, "num must be an integer from 0, not -1"):
        array.linspace(device, 0, 1, -1)
    with refused(device, "no real number"):
        array.linspace(device, np.zeros(2), 1)


@given(rows=st.integers(0, 5), columns=st.none() | st.integers(0, 5), k=st.integers(-7, 7))
def test_eye_is_numpys_in_every_dtype(
    device: Device, rows: int, columns: int | None, k: int
) -> None:
    for dtype in NAMES:
        got = value(device, array.eye(device, rows, columns, k, dtype))
        assert_same(got, np.eye(rows, columns, k).astype(numpy_dtype(dtype)))
    assert array.eye(device, 2).dtype == "float64"


def test_a_matrix_needs_extents(device: Device) -> None:
    with refused(device, "Eye: a shape is a tuple of integers"):
        array.eye(device, -1)
    with refused(device, "Eye: k is of type int"):
        array.eye(device, 2, k=0.5)  # type: ignore[arg-type]


@given(
    seed=seeds,
    n=st.integers(0, 4),
    k=st.integers(-3, 3),
    dtype=DTYPES,
    layout=layouts,
)
def test_diag_is_numpys_of_vectors_and_matrices(
    device: Device, seed: int, n: int, k: int, dtype: str, layout: Layout
) -> None:
    x, y = small(seed, (n,), dtype), small(seed, (n, 3), dtype)
    near(device, value(device, array.diag(place(device, x, layout), k)), np.diag(x, k))
    near(device, value(device, array.diag(place(device, y, layout), k)), np.diag(y, k))


def test_diag_of_anything_else_is_refused(device: Device) -> None:
    x = array.zeros(device, (2, 2, 2))
    with refused(device, "a vector or a matrix", "float32[2, 2, 2]"):
        array.diag(x)
