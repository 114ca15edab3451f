"""The contract of put, get and run: the same bytes come back, whatever the array's memory."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import INLINE_BYTES
from accel_lab.errors import InvalidArgument, UserCodeError
from tests.contract.samples import LAYOUTS, Layout, assert_same, place, refused, seeds, value

dtypes = st.sampled_from(NAMES)
shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
MEMORIES: dict[str, Callable[[Any], Any]] = {
    "in C order": np.copy,
    "in Fortran's order": lambda x: x.copy(order="F"),
    "transposed": lambda x: x.T,
    "every second": lambda x: x[(..., slice(None, None, 2))] if x.ndim else x,
    "backwards": lambda x: x[(slice(None, None, -1),) * x.ndim],
    "broadcast": lambda x: np.broadcast_to(x, (3, *x.shape)),
    "in foreign byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "in a subclass": lambda x: x.view(np.recarray),
}


def bits(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Draw every bit, so NaNs with payloads too; a bool has only two values."""
    native = numpy_dtype(dtype)
    count = int(np.prod(shape)) * native.itemsize
    raw = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 256, count, np.uint8)
    return raw.view(native).reshape(shape)


@pytest.mark.parametrize("memory", MEMORIES)
@settings(max_examples=25)
@given(seed=seeds, shape=shapes, dtype=dtypes)
def test_an_array_comes_back_as_it_went(
    device: Device, memory: str, seed: int, shape: tuple[int, ...], dtype: str
) -> None:
    x = MEMORIES[memory](bits(seed, shape, dtype))
    ref = device.put(x)
    assert ref.shape == x.shape
    assert ref.dtype == dtype
    assert_same(value(device, ref), np.asarray(x, numpy_dtype(dtype)))


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_way_through_the_arena_gives_the_same_bytes(
    device: Device, dtype: str, extra: int
) -> None:
    x = bits(0, (INLINE_BYTES // numpy_dtype(dtype).itemsize + extra,), dtype)
    assert_same(value(device, device.put(x)), x)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "complex128"])
def test_a_large_array_without_order_is_staged_in_chunks(device: Device, dtype: str) -> None:
    x = bits(1, (9 << 20,), "uint8").view(numpy_dtype(dtype)).reshape(3, 512, -1)
    for part in (x.T, x[:, ::2, ::-1]):
        assert_same(value(device, device.put(part)), np.ascontiguousarray(part))


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=25)
@given(seed=seeds, shape=shapes, dtype=dtypes)
def test_a_view_is_downloaded_in_c_order(
    device: Device, layout: Layout, seed: int, shape: tuple[int, ...], dtype: str
) -> None:
    x = bits(seed, shape, dtype)
    assert_same(value(device, place(device, x, layout)), x)


def test_put_has_copied_when_it_returns(device: Device) -> None:
    for count in (16, 1 << 20):
        x = np.arange(count, dtype=np.float32)
        ref = device.put(x)
        x[:] = -1
        assert_same(value(device, ref), np.arange(count, dtype=np.float32))


def test_an_array_that_was_got_belongs_to_the_caller(device: Device) -> None:
    for count in (16, 1 << 16):
        ref = array.full(device, count, 7)
        first = value(device, ref)
        first[:] = 0
        assert (value(device, ref) == 7).all()
        del ref
        gc.collect()
        assert not first.any()


def test_lists_and_numbers_are_arrays_too(device: Device) -> None:
    assert_same(value(device, device.put([[1, 2], [3, 4]])), np.array([[1, 2], [3, 4]]))
    assert_same(value(device, device.put(2.5)), np.array(2.5))


@pytest.mark.parametrize(
    "x",
    [np.array(["text"]), np.array([None]), np.zeros(2, np.longdouble), np.zeros(2, "M8[s]")],
    ids=lambda x: str(x.dtype),
)
def test_a_dtype_without_a_name_is_refused(device: Device, x: Any) -> None:
    with refused(device, "is not one of", "float32", "bfloat16"):
        device.put(x)


def test_get_takes_buffers_only(device: Device) -> None:
    with refused(device, "ndarray"):
        device.get(np.zeros(3))  # type: ignore[arg-type]


@settings(max_examples=40)
@given(seed=seeds, shape=shapes, dtype=dtypes, layout=st.sampled_from(LAYOUTS))
def test_run_gets_an_array_and_gives_a_buffer(
    device: Device, seed: int, shape: tuple[int, ...], dtype: str, layout: Layout
) -> None:
    x = bits(seed, shape, dtype)
    answer = device.run(lambda a: a, place(device, x, layout)).result(timeout_s=30)
    assert isinstance(answer, AccelRef)
    assert answer.shape == shape
    # A backend may hold narrow floats as integers of their width; the bits are the same.
    assert numpy_dtype(answer.dtype).itemsize == numpy_dtype(dtype).itemsize
    assert value(device, answer).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint64", "float16", "float64", "complex64"])
def test_run_computes_where_the_arrays_are(device: Device, dtype: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    answer = device.run(lambda a, axis: a.cumsum(axis).astype(a.dtype), device.put(x), axis=1)
    assert_same(value(device, answer.result(timeout_s=30)), x.cumsum(1).astype(dtype))


def test_buffers_inside_an_answer_are_buffers(device: Device) -> None:
    x = device.put(np.arange(6.0))
    answer = device.run(lambda a: {"twice": a + a, "parts": [a[:2], a[2:]], "n": a.size}, x)
    found = answer.result(timeout_s=30)
    assert found["n"] == 6
    assert_same(value(device, found["twice"]), 2 * np.arange(6.0))
    assert [value(device, part).tolist() for part in found["parts"]] == [[0, 1], [2, 3, 4, 5]]


def test_an_answer_that_is_a_view_shares_its_operand_s_memory(device: Device) -> None:
    x = device.put(np.arange(6.0))
    odd = device.run(lambda a: a[1::2], x).result(timeout_s=30)
    array.copy(array.zeros(device, 3, "float64"), out=odd)
    assert value(device, x).tolist() == [0, 0, 2, 0, 4, 0]
    del x
    gc.collect()
    assert value(device, odd).tolist() == [0, 0, 0]


def test_what_run_writes_in_place_is_read_afterwards(device: Device) -> None:
    def fill(a: Any) -> None:
        a[...] = 3

    x = array.zeros(device, (2, 3))
    part = array.slice(x, np.s_[:, 1:])
    assert device.run(fill, part).result(timeout_s=30) is None
    assert value(device, x).tolist() == [[0, 3, 3], [0, 3, 3]]


def test_an_answer_is_an_operand_before_it_has_come(device: Device) -> None:
    doubled = device.run(lambda a: a + a, device.put(np.arange(3.0)))
    again = device.run(lambda a: a + a, doubled)
    assert value(device, again.result(timeout_s=30)).tolist() == [0, 4, 8]


def test_what_a_function_raises_is_the_cause(device: Device) -> None:
    with pytest.raises(UserCodeError, match="ZeroDivisionError") as caught:
        device.run(lambda a: a.size // 0, array.zeros(device, 3)).result(timeout_s=30)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_function_that_does_not_pickle_is_refused(device: Device) -> None:
    generator = (n for n in range(3))
    with refused(device, "cannot be sent", error=InvalidArgument):
        device.run(lambda: next(generator))
