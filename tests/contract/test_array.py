"""The contract of `libraries.array`, met by every backend; NumPy's indexing is the definition."""

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from tests.contract.samples import (
    LAYOUTS,
    Layout,
    assert_same,
    layouts,
    place,
    refused,
    seeds,
    small,
    value,
)

shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
NARROW = ("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16")


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7,), (2, 3, 4)], ids=str)
def test_zeros_is_zeros(device: Device, dtype: str, shape: tuple[int, ...]) -> None:
    # Memory that is used again must be cleared again.
    del_me = [array.full(device, shape, 1, dtype) for _ in range(3)]
    del del_me
    ref = array.zeros(device, shape, dtype)
    assert (ref.shape, ref.dtype) == (shape, dtype)
    assert_same(value(device, ref), np.zeros(shape, numpy_dtype(dtype)))


def test_a_shape_and_a_dtype_may_be_whatever_numpy_takes(device: Device) -> None:
    assert array.zeros(device, 3).shape == (3,)
    assert array.zeros(device, [np.int64(2), 3]).shape == (2, 3)
    assert array.zeros(device, 1).dtype == "float32"
    assert array.zeros(device, 1, np.int16).dtype == "int16"
    assert array.zeros(device, 1, ">f8").dtype == "float64"


@pytest.mark.parametrize("dtype", NAMES)
def test_full_holds_its_value(device: Device, dtype: str) -> None:
    ref = array.full(device, (2, 3), 1, dtype)
    assert_same(value(device, ref), np.ones((2, 3), numpy_dtype(dtype)))


@pytest.mark.parametrize("dtype", [name for name in NAMES if numpy_dtype(name).kind in "iu"])
def test_full_holds_the_extreme_integers_exactly(device: Device, dtype: str) -> None:
    for extreme in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        assert int(value(device, array.full(device, (), int(extreme), dtype))) == extreme


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_full_holds_complex_values(device: Device, dtype: str) -> None:
    for number in (1 - 2j, np.complex64(3j), 4):
        assert value(device, array.full(device, 2, number, dtype)).tolist() == [number, number]


def test_full_rounds_a_float_as_its_dtype_does(device: Device) -> None:
    assert value(device, array.full(device, (), 0.1, "bfloat16")).tobytes() == b"\xcd\x3d"
    assert np.isnan(value(device, array.full(device, (), float("nan"), "float16")))
    assert value(device, array.full(device, (), -1e9, "float16")) == -np.inf


@settings(max_examples=30)
@given(seed=seeds, shape=shapes, dtype=st.sampled_from(NAMES), layout=layouts)
def test_a_copy_is_equal_and_apart(
    device: Device, seed: int, shape: tuple[int, ...], dtype: str, layout: Layout
) -> None:
    x = small(seed, shape, dtype)
    original = place(device, x, layout)
    copied = array.copy(original)
    array.copy(array.zeros(device, shape, dtype), out=original)
    assert_same(value(device, copied), x)
    assert_same(value(device, original), np.zeros_like(x))


@pytest.mark.parametrize("source", NAMES)
def test_cast_keeps_what_both_dtypes_have(device: Device, source: str) -> None:
    x = np.array([[0, 1, 0], [1, 1, 0]]).astype(numpy_dtype(source))
    ref = array.transpose(device.put(x))
    for target in NAMES:
        if is_complex(source) and not is_complex(target) and target != "bool":
            with refused(device, "Cast", f"{source}[3, 2]", target, "imaginary"):
                array.cast(ref, target)
        else:
            cast = array.cast(ref, target)
            assert (cast.shape, cast.dtype) == ((3, 2), target)
            assert_same(value(device, cast), x.T.astype(numpy_dtype(target)))


def every_finite(dtype: str) -> Any:
    """Return all finite numbers of a narrow float."""
    native = numpy_dtype(dtype)
    every = np.arange(2 ** (8 * native.itemsize)).astype(f"u{native.itemsize}").view(native)
    with np.errstate(invalid="ignore"):  # signalling NaNs are among them
        return every[np.isfinite(every)]


@pytest.mark.parametrize("dtype", NARROW)
def test_cast_to_a_wider_float_and_back_changes_no_bit(device: Device, dtype: str) -> None:
    x = every_finite(dtype)
    wide = array.cast(device.put(x), "float32")
    assert_same(value(device, array.cast(wide, dtype)), x)


@pytest.mark.parametrize("dtype", NARROW)
@settings(max_examples=20)
@given(seed=seeds)
def test_cast_to_a_narrow_float_takes_the_nearest(device: Device, dtype: str, seed: int) -> None:
    finite = np.sort(every_finite(dtype).astype(np.float64))
    x = np.random.default_rng(seed).standard_normal(100).astype(np.float32)
    got = value(device, array.cast(device.put(x), dtype)).astype(np.float64)
    above = np.searchsorted(finite, x)
    nearest = np.minimum(np.abs(finite[above] - x), np.abs(finite[above - 1] - x))
    assert (np.abs(got - x) == nearest).all()


def test_cast_to_bool_asks_whether_it_is_zero(device: Device) -> None:
    for x in (np.array([0.0, -0.0, 0.3, np.inf]), np.array([0j, 1e-9j, 1]), np.array([0, -7])):
        cast = array.cast(device.put(x), "bool")
        assert value(device, cast).tolist() == [bool(number) for number in x]


def test_cast_to_the_same_dtype_is_a_copy(device: Device) -> None:
    x = array.zeros(device, 2)
    cast = array.cast(x, "float32")
    array.copy(array.full(device, 2, 1), out=x)
    assert value(device, cast).tolist() == [0, 0]


@pytest.mark.parametrize("far", [2**63, 2**70])
@pytest.mark.parametrize("index", [np.s_[:9], np.s_[-9:], np.s_[::9], np.s_[::-9]])
def test_a_slice_may_end_far_outside(device: Device, index: slice, far: int) -> None:
    x = np.arange(4.0)
    start, stop, step = (part and part * far for part in (index.start, index.stop, index.step))
    ref = array.slice(device.put(x), np.s_[start:stop:step])
    assert_same(value(device, ref), x[start:stop:step])


@settings(max_examples=40)
@given(data=st.data(), shape=shapes, layout=layouts)
def test_a_reshape_has_the_same_elements_in_c_order(
    device: Device, data: st.DataObject, shape: tuple[int, ...], layout: Layout
) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    target = list(data.draw(st.permutations([*shape, 1])))
    if x.size and data.draw(st.booleans()):
        target[data.draw(st.integers(0, len(target) - 1))] = -1
    ref = array.reshape(place(device, x, layout), target)
    expected = x.reshape(target)
    assert ref.shape == expected.shape
    assert_same(value(device, ref), expected)


@settings(max_examples=30)
@given(data=st.data(), shape=shapes, layout=layouts)
def test_transposing_back_gives_the_array(
    device: Device, data: st.DataObject, shape: tuple[int, ...], layout: Layout
) -> None:
    x = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    axes = data.draw(st.permutations(range(len(shape))))
    ref = place(device, x, layout)
    turned = array.transpose(ref, axes)
    assert_same(value(device, turned), x.transpose(axes))
    assert_same(value(device, array.transpose(turned, np.argsort(axes))), x)
    assert_same(value(device, array.transpose(ref)), x.T)


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_of_views_are_views_of_the_first(device: Device, dtype: str, layout: Layout) -> None:
    x = small(0, (4, 6), dtype)
    ref = array.transpose(array.slice(place(device, x, layout), np.s_[1:, None, ::-2]))
    assert_same(value(device, ref), x[1:, None, ::-2].T)


VIEWS: dict[str, Callable[[AccelRef], AccelRef]] = {
    "slice": lambda x: array.slice(x, np.s_[...]),
    "reshape": lambda x: array.reshape(x, (3, 2)),
    "transpose": array.transpose,
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_and_its_base_are_one_memory(device: Device, view: str) -> None:
    base = array.zeros(device, (2, 3), "int32")
    seen = VIEWS[view](base)
    array.copy(array.full(device, seen.shape, 1, "int32"), out=seen)
    assert (value(device, base) == 1).all()
    array.copy(array.full(device, (2, 3), 2, "int32"), out=base)
    assert (value(device, seen) == 2).all()


def test_a_reshape_that_strides_do_not_allow_is_a_copy(device: Device) -> None:
    base = device.put(np.arange(6.0).reshape(2, 3))
    flat = array.reshape(array.transpose(base), -1)
    array.copy(array.zeros(device, (2, 3), "float64"), out=base)
    assert value(device, flat).tolist() == [0, 3, 1, 4, 2, 5]


def test_a_view_outlives_the_handle_of_its_base(device: Device) -> None:
    base = device.put(np.arange(1 << 16))
    last = array.slice(base, -1)
    base.result(timeout_s=30)
    del base
    gc.collect()
    fillers = [array.full(device, 1 << 16, -1, "int64") for _ in range(4)]
    assert int(value(device, last)) == (1 << 16) - 1
    del fillers


def test_writes_and_reads_happen_in_the_order_sent(device: Device) -> None:
    x = array.zeros(device, 1 << 16, "int32")
    seen = []
    for step in range(1, 20):
        array.copy(array.full(device, 1 << 16, step, "int32"), out=x)
        seen.append(device.get(array.slice(x, np.s_[::4096])))
    for step, reply in enumerate(seen, 1):
        assert (reply.result(timeout_s=30) == step).all()


REFUSED: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "negative extent": (lambda b: array.zeros(b.device, (2, -1)), ("Zeros", "(2, -1)", "from 0")),
    "extent that is no integer": (
        lambda b: array.zeros(b.device, b.numbers),
        ("shape must be integers", "0."),
    ),
    "more elements than can be": (
        lambda b: array.zeros(b.device, (2**40, 2**40)),
        ("Zeros", "[1099511627776, 1099511627776]", "elements"),
    ),
    "longer than can be, of nothing": (
        lambda b: array.zeros(b.device, (2**62, 0)),
        ("Zeros", "[4611686018427387904, 0]", "elements"),
    ),
    "reshaped to that": (
        lambda b: array.reshape(b.empty, (2**60, 0)),
        ("Reshape", "[1152921504606846976, 0]", "elements"),
    ),
    "more axes than can be": (lambda b: array.zeros(b.device, (1,) * 33), ("33 axes", "32")),
    "unknown dtype": (lambda b: array.zeros(b.device, 2, "float31"), ("float31", "float32")),
    "too large for the dtype": (
        lambda b: array.full(b.device, 2, 256, "uint8"),
        ("value is 256", "uint8", "from 0 to 255"),
    ),
    "no integer": (lambda b: array.full(b.device, 2, 0.5, "int8"), ("value is 0.5", "int8")),
    "no integer at all": (
        lambda b: array.full(b.device, 2, float("nan"), "int8"),
        ("value is nan", "int8"),
    ),
    "neither true nor false": (
        lambda b: array.full(b.device, 2, 2, "bool"),
        ("value is 2", "bool"),
    ),
    "no real value": (
        lambda b: array.full(b.device, 2, 1j, "float32"),
        ("1j", "float32", "complex"),
    ),
    "no number": (lambda b: array.full(b.device, 2, b.text), ("value must be a number, not str",)),
    "two numbers": (
        lambda b: array.full(b.device, 2, [1, 2], "complex64"),  # type: ignore[arg-type]
        ("value must be a number, not list",),
    ),
    "three numbers": (
        lambda b: array.full(b.device, 3, [1.0, 2.0, 3.0]),  # type: ignore[arg-type]
        ("value must be a number, not list",),
    ),
    "too large an integer": (
        lambda b: array.full(b.device, 2, 10**400),
        ("too large", "float32"),
    ),
    "unknown target": (lambda b: array.cast(b.x, "text"), ("text", "float32")),
    "index outside": (
        lambda b: array.slice(b.x, (0, 3)),
        ("index 3", "axis 1", "float32[2, 3]", "3 elements"),
    ),
    "negative index outside": (lambda b: array.slice(b.x, -3), ("index -3", "axis 0")),
    "too many indices": (lambda b: array.slice(b.x, (0, 0, 0)), ("3 axes", "float32[2, 3]")),
    "step of zero": (lambda b: array.slice(b.x, np.s_[:, ::0]), ("step", "axis 1", "is 0")),
    "two dots": (lambda b: array.slice(b.x, (..., 0, ...)), ("more than one Ellipsis",)),
    "list as index": (lambda b: array.slice(b.x, [0, 1]), ("ints, slices", "[0, 1]")),
    "mask as index": (lambda b: array.slice(b.x, True), ("ints, slices", "True")),  # noqa: FBT003
    "elements left over": (
        lambda b: array.reshape(b.x, (4, 2)),
        ("float32[2, 3]", "6 elements", "[4, 2]"),
    ),
    "no whole extent": (lambda b: array.reshape(b.x, (4, -1)), ("6 elements", "[4, -1]")),
    "two unknown extents": (lambda b: array.reshape(b.x, (-1, -1)), ("[-1, -1]",)),
    "unknown extent of nothing": (
        lambda b: array.reshape(b.empty, (0, -1)),
        ("0 elements", "[0, -1]"),
    ),
    "no permutation": (
        lambda b: array.transpose(b.x, (0, 0)),
        ("axes [0, 0]", "permutation", "float32[2, 3]"),
    ),
    "axes missing": (lambda b: array.transpose(b.x, (0,)), ("axes [0]", "2 axes")),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    buffers = SimpleNamespace(
        device=device,
        x=array.zeros(device, (2, 3)),
        empty=array.zeros(device, 0),
        numbers=np.zeros((2, 3), np.float32),
        text="1",
    )
    with refused(device, *words):
        send(buffers)


def test_a_message_can_be_built_and_asked_by_hand(device: Device) -> None:
    x = device.ask(array.Full((2, 2), 3, "float64"))
    part = device.ask(array.Slice(x, (0, (None, None, -1), None)))
    assert value(device, part).tolist() == [[3], [3]]
    assert is_float(part.dtype)
