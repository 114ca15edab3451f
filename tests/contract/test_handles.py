"""What the handle of a buffer is to Python: a number, a sequence, a thing of its own."""

import gc
import operator
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import array, rng
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from tests.contract.numpys import near


def test_the_rest_of_numpys_methods(device: Device) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    on = device.put(x)
    near(device, on.T.get(), x.T)
    near(device, on.transpose(1, 0).get(), x.T)
    near(device, on.reshape(3, 2).get(), x.reshape(3, 2))
    near(device, on.reshape((6,)).get(), x.reshape(6))
    near(device, on.ravel().get(), x.ravel())
    near(device, on.astype(np.int8).get(), x.astype(np.int8))
    near(device, (-on).get(), -x)
    near(device, (+on).get(), +x)
    near(device, abs(on).get(), abs(x))
    near(device, (~on.astype("int8")).get(), ~x.astype(np.int8))
    assert len(on) == 2
    for row, expected in zip(on, x, strict=True):
        near(device, row.get(), expected)
    with pytest.raises(TypeError, match="0-d"):
        iter(on.sum())
    with pytest.raises(TypeError, match="0-d"):
        len(on.sum())


def test_in_place_operators_give_the_name_a_new_buffer(device: Device) -> None:
    x = array.full(device, 3, 1)
    same, view = x, x[1:]
    x += 1
    assert x is not same
    assert x.get().tolist() == [2, 2, 2]
    assert (same.get().tolist(), view.get().tolist()) == ([1, 1, 1], [1, 1])


@given(value=st.floats(-1e6, 1e6), spec=st.sampled_from([".2f", "8.3e", "+g", "", "%"]))
def test_a_number_on_the_device_is_written_and_rounded_as_numpys(
    device: Device, value: float, spec: str
) -> None:
    there = device.put(np.array(value))
    assert round(there, 2) == round(value, 2)
    assert type(round(there)) is int
    assert f"{there:{spec}}" == (format(np.array(value), spec) if spec else str(there))


@pytest.mark.parametrize(
    ("dtype", "spec"), [("float32", ".3f"), ("int64", "5d"), ("bool", "d"), ("complex64", ".1f")]
)
def test_a_number_of_any_dtype_is_written_as_numpys(device: Device, dtype: str, spec: str) -> None:
    value = np.array(1, dtype)
    assert format(device.put(value), spec) == format(value, spec)


def test_what_has_axes_is_neither_rounded_nor_written_as_a_number(device: Device) -> None:
    x = device.put(np.ones(2))
    with pytest.raises(TypeError, match=r"float64\[2\] has axes, and the format '.2f' takes a 0-d"):
        format(x, ".2f")
    with pytest.raises(TypeError, match=r"and round\(\) takes a 0-d buffer: use one element"):
        round(x, 2)
    assert f"{x}" == str(x)


@pytest.mark.parametrize("name", ["dot", "flatten", "clip", "cumsum", "sort"])
def test_a_method_that_only_arrays_have_is_pointed_to(device: Device, name: str) -> None:
    x = device.put(np.ones(2))
    use = rf"no attribute '{name}'.* %%gpu cell, or as gpu.run\(lambda x: x.{name}\(…\), ref\)"
    with pytest.raises(AttributeError, match=use):
        getattr(x, name)
    with pytest.raises(AttributeError, match=r"lambda x: x.imag, ref\)"):
        _ = x.imag
    with pytest.raises(AttributeError, match=r"'nonsense'$"):
        _ = x.nonsense


def test_what_needs_a_value_of_pythons_fetches_it(device: Device) -> None:
    three = device.put(np.array([3], np.float32))
    assert three
    assert not three - 3
    assert (int(three[0]), float(three[0]), complex(three[0]), three.item()) == (3, 3.0, 3 + 0j, 3)
    assert 3 in three
    assert 4 not in three
    assert None not in three
    assert np.asarray(three).tolist() == [3]
    assert np.asarray(three, "int8").dtype == "int8"
    assert np.allclose(three, [3])
    with pytest.raises(ValueError, match="copy"):
        np.array(three, copy=False)
    for several in (array.zeros(device, 2), array.zeros(device, 0)):
        with pytest.raises(InvalidArgument, match="compare handles with `is`"):
            bool(several)
        with pytest.raises(InvalidArgument, match="elements, not one"):
            several.item()


def test_a_histogram_fetches_an_array_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    x = device.put(np.arange(64.0))
    monkeypatch.setattr(AccelRef, "__iter__", None)  # element by element it takes minutes
    counts, *_ = figure.subplots().hist(x.ravel(), bins=4)
    assert counts.tolist() == [16, 16, 16, 16]
    np.testing.assert_array_equal(x.to_numpy(), np.arange(64.0))


def test_handles_are_told_apart_by_identity(device: Device) -> None:
    x, y = array.zeros(device, 2), array.zeros(device, 2)
    assert len({x, y, x}) == 2
    assert {x: "x"}[x] == "x"
    assert isinstance(x == y, AccelRef)
    nothing: object = None
    assert operator.eq(x, nothing) is False
    assert operator.ne(x, "text") is True


@pytest.mark.parametrize("other", [[1.0, 2.0], (1.0, 2.0)])
def test_a_list_is_not_compared_as_if_it_were_one_thing(device: Device, other: Any) -> None:
    x = device.put(np.array([1.0, 2.0]))
    for compare in (operator.eq, operator.ne, operator.lt):
        with pytest.raises(TypeError):
            compare(x, other)
    assert (x == np.array(other)).get(timeout_s=60).all()
    absent: Any = None
    assert (x == absent) is False  # as whoever looks for an argument writes


def test_the_shape_of_a_handle_is_not_set(device: Device) -> None:
    """It would not change what is on the device."""
    x = device.put(np.arange(6.0))
    wrong: list[tuple[str, Any]] = [("shape", (2, 3)), ("dtype", "int64")]
    for name, other in wrong:
        with pytest.raises(AttributeError, match=name):
            setattr(x, name, other)
    assert (x.shape, x.dtype) == ((6,), "float64")
    y = device.run(lambda a: a.reshape(2, 3), x, pure=True)
    assert (y.shape, y.dtype) == ((2, 3), "float64")  # known when it is done


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex128, bool, ml_dtypes.bfloat16])
def test_the_dtype_of_a_handle_is_compared_as_numpys(device: Device, dtype: Any) -> None:
    x = np.ones(3, dtype)
    on = device.put(x)
    for made in (on, on.copy(), device.run(lambda a: a.copy(), on)):
        assert made.dtype == dtype
        assert made.dtype in (np.uint16, dtype)
        assert made.dtype != np.uint16
        assert made.dtype.kind == x.dtype.kind
        assert np.dtype(made.dtype) == x.dtype
        near(device, array.zeros(device, 2, made.dtype).get(), np.zeros(2, dtype))
        near(device, made.astype(made.dtype).get(), x)


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy asks for no __numpy_dtype__"
)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex128, bool, ml_dtypes.bfloat16])
def test_numpy_takes_a_handle_for_its_dtype(device: Device, dtype: Any) -> None:
    x = np.ones(3, dtype)
    on = device.put(x)
    before = device.last_number
    assert np.result_type(on) == np.dtype(on) == x.dtype
    assert np.result_type(on, np.complex64) == np.result_type(x, np.complex64)
    assert np.can_cast(on, np.complex128) == np.can_cast(x.dtype, np.complex128)
    assert device.last_number == before


def test_a_message_takes_the_dtype_of_a_handle(device: Device) -> None:
    x = device.put(np.ones(3, np.float32))
    drawn = rng.uniform(device, 3, x.dtype, seed=1)
    assert drawn.dtype == x.dtype
    near(device, device.ask(array.Full((2,), 1, x.dtype)).get(), np.ones(2, np.float32))
    device.checkpoint(x)
    assert device.run(lambda name: f"{name}", x.dtype).result() == "float32"


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32"])
def test_an_integer_on_the_device_is_an_index(device: Device, dtype: str) -> None:
    two = device.put(np.array(2, dtype))
    assert (operator.index(two), list(range(two)), [0] * two) == (2, [0, 1], [0, 0])
    assert (["a", "b", "c"][two], "abc"[:two], hex(two)) == ("c", "ab", "0x2")
    assert np.arange(5)[two] == 2
    x = np.arange(12).reshape(3, 4)
    on = device.put(x)
    near(device, on[:two, ::two].get(), x[:2, ::2])
    near(device, on[two].get(), x[2])
    near(device, array.zeros(device, two, "int8").get(), np.zeros(2, "int8"))
    near(device, array.zeros(device, (two, 1), "int8").get(), np.zeros((2, 1), "int8"))
    near(device, on.sum(axis=device.put(np.array(1, dtype))).get(), x.sum(axis=1))
    assert on.argmax() == operator.index(on.argmax()) == 11


@pytest.mark.parametrize("value", [2.0, True, 2j, [2], [1, 2], np.float16(1)])
def test_all_else_is_no_index_and_is_not_fetched(device: Device, value: Any) -> None:
    on = device.put(np.asarray(value))
    before = device.last_number
    for asks in (operator.index, range, "abc".__getitem__):
        with pytest.raises(TypeError, match="cannot be an index: a 0-d buffer of integers can"):
            asks(on)
    assert device.last_number == before


def test_a_handle_given_as_a_dtype_is_not_kept(device: Device) -> None:
    on = device.put(np.ones(3, np.float32))
    assert array.zeros(device, 2, on).result().dtype == on.result().dtype
    gone = weakref.ref(on)
    del on
    gc.collect()
    assert gone() is None
