"""The operators and methods of buffers, against NumPy: shapes, dtypes and values.

On the host they are NumPy's own, to the last bit; elsewhere floats may differ as `near` says.
"""

import operator
import re
from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.device import Device
from accel_lab.compute.dtypes import NAMES, canonical, is_complex, is_float, numpy_dtype
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array, blas, rng
from accel_lab.libraries.elementwise import BINARY, UNARY, BinaryOp, UnaryOp
from accel_lab.libraries.reduction import PLACES, REDUCE, SPREADS, ReduceOp
from tests.contract.samples import (
    Layout,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    unanswered,
    value,
)
from tests.contract.tolerances import EPS

NARROW = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
NUMBERS: tuple[Any, ...] = (True, 3, 2.5, 1 - 2j)
SCALARS: tuple[Any, ...] = (np.float32(2.5), np.int8(3), np.float64(0.5), np.bool_(1))
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
DTYPES = st.sampled_from(NAMES)
shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def near(device: Device, got: Any, expected: Any, steps: int = 4) -> None:
    """Compare shape, dtype and values: exactly on the host, within few roundings elsewhere."""
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    name = canonical(expected.dtype)
    if name in NARROW:
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    if device.name.startswith("cpu") or not (is_float(name) or is_complex(name)):
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=steps * EPS[name], atol=steps * EPS[name])


def numpys(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Return what NumPy does, or the type of its refusal."""
    with np.errstate(all="ignore"):
        try:
            result = np.asarray(function(*operands, **options))
        except (TypeError, ValueError, OverflowError) as error:
            return type(error)
    return result if str(result.dtype) in NAMES else TypeError


def compare(device: Device, function: Callable[..., Any], ours: Any, *operands: Any) -> None:
    """Compare a call with NumPy's of the same operands, refusals included."""
    expected = numpys(function, *operands)
    on = [device.put(x) if isinstance(x, np.ndarray) else x for x in operands]
    if isinstance(expected, type):
        with pytest.raises(InvalidArgument):
            ours(*on).result(timeout_s=30)
        return
    ref = ours(*on)
    assert (ref.shape, ref.dtype) == (expected.shape, canonical(expected.dtype))
    near(device, value(device, ref), expected)


def positive(x: Any) -> Any:
    """Return an array without the values that leave NumPy's integer powers and shifts undefined."""
    return np.abs(x) if x.dtype.kind == "i" else x


def without_zeros(device: Device, x: Any) -> Any:
    """Return divisors for which CuPy has NumPy's answer; of a complex number by 0 it has not."""
    return x if device.name.startswith("cpu") else np.where(x == 0, 1, x).astype(x.dtype)


@pytest.mark.parametrize("op", get_args(UnaryOp))
def test_a_function_of_each_element_is_numpys_in_every_dtype(device: Device, op: UnaryOp) -> None:
    assert op in UNARY
    for dtype in NAMES:
        x = small(0, (2, 3), dtype)
        if op == "reciprocal":
            x = without_zeros(device, x)
        compare(device, getattr(np, op), getattr(array, op), x)


@pytest.mark.parametrize("op", get_args(BinaryOp))
def test_a_function_of_two_operands_is_numpys_in_every_pair_of_dtypes(
    device: Device, op: BinaryOp
) -> None:
    assert op in BINARY
    for left, right in product(NAMES, NAMES):
        x, y = positive(small(0, (3,), left)), positive(small(1, (3,), right))
        if op in {"divide", "floor_divide", "remainder"}:
            y = without_zeros(device, y)
        compare(device, getattr(np, op), getattr(array, op), x, y)


@pytest.mark.parametrize("op", OPERATORS)
def test_an_operator_takes_numbers_on_either_side_as_weak_ones(device: Device, op: str) -> None:
    apply = OPERATORS[op]
    for dtype, number in product(NAMES, (*NUMBERS, *SCALARS)):
        x = positive(small(2, (3,), dtype)) + np.ones((), numpy_dtype(dtype))
        compare(device, apply, apply, x, number)
        compare(device, apply, apply, number, without_zeros(device, x) if op == "divide" else x)


@settings(max_examples=80)
@given(
    data=st.data(),
    shapes=npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4),
    seed=seeds,
    dtypes=st.tuples(DTYPES, DTYPES),
    op=st.sampled_from(["add", "subtract", "multiply", "less", "equal", "divide"]),
)
def test_operands_of_any_strides_broadcast(
    device: Device,
    data: st.DataObject,
    shapes: Any,
    seed: int,
    dtypes: tuple[str, str],
    op: str,
) -> None:
    x, y = (
        small(seed + i, shape, dtype)
        for i, (shape, dtype) in enumerate(zip(shapes.input_shapes, dtypes, strict=True))
    )
    if op == "divide":
        y = without_zeros(device, y)
    expected = numpys(OPERATORS[op], x, y)
    left, right = place(device, x, data.draw(layouts)), place(device, y, data.draw(layouts))
    if isinstance(expected, type):
        with pytest.raises(InvalidArgument):
            OPERATORS[op](left, right)
        return
    got = OPERATORS[op](left, right)
    assert got.shape == shapes.result_shape
    near(device, value(device, got), expected)


@settings(max_examples=60)
@given(
    shapes=npst.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4),
    seed=seeds,
    dtypes=st.tuples(DTYPES, DTYPES, DTYPES),
)
def test_where_chooses_as_numpy_does(
    device: Device, shapes: Any, seed: int, dtypes: tuple[str, str, str]
) -> None:
    arrays = [
        np.asarray(small(seed + i, shape, dtype))
        for i, (shape, dtype) in enumerate(zip(shapes.input_shapes, dtypes, strict=True))
    ]
    compare(device, np.where, array.where, *arrays)


def wheres(mask: Any, x: Any, y: Any) -> Any:
    """Return NumPy's choice, in the dtype that other functions of narrow floats have."""
    return np.where(mask, x, y).astype(np.maximum(x, y).dtype)


def test_where_takes_numbers_for_either_choice(device: Device) -> None:
    for dtype, number in product(NAMES, NUMBERS):
        mask, x = np.array([True, False, True]), small(3, (3,), dtype)
        compare(device, wheres, array.where, mask, x, number)
        compare(device, wheres, array.where, mask, number, x)
    compare(device, wheres, array.where, np.array([0.0, 2.0]), 1, 0.5)


def reduced(op: str, x: Any, **options: Any) -> Any:
    """Return NumPy's reduction; of the floats it lacks in float32, rounded once."""
    if str(x.dtype) not in NARROW:
        return numpys(getattr(np, op), x, **options)
    result = numpys(getattr(np, op), x.astype(np.float32), **options)
    keeps = isinstance(result, type) or op in PLACES | {"any", "all"}
    return result if keeps else result.astype(x.dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's of empty means
@settings(max_examples=300)
@given(
    data=st.data(),
    shape=shapes,
    seed=seeds,
    dtype=DTYPES,
    op=st.sampled_from(get_args(ReduceOp)),
    keepdims=st.booleans(),
)
def test_reductions_along_any_axes_are_numpys(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    op: ReduceOp,
    keepdims: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    x = reals(seed, shape, dtype) if is_float(dtype) else small(seed, shape, dtype)
    ndim = len(shape)
    one = st.integers(-ndim, ndim - 1) if ndim else st.none()
    several = npst.valid_tuple_axes(ndim, min_size=1) if ndim else st.none()
    axis: Any = data.draw(one | st.none() if op in PLACES else one | several | st.none())
    expected = reduced(op, x, axis=axis, keepdims=keepdims)
    on = device.put(x)
    if isinstance(expected, type):
        with refused(device, "Reduce", op):
            getattr(on, op)(axis, keepdims=keepdims)
        return
    got = getattr(on, op)(axis, keepdims=keepdims)
    assert (got.shape, got.dtype) == (expected.shape, canonical(expected.dtype))
    near(device, value(device, got), expected, steps=64)


@pytest.mark.parametrize("op", sorted(REDUCE))
def test_numpys_own_function_of_a_buffer_stays_on_the_device(device: Device, op: str) -> None:
    x = small(0, (3, 4), "float32")
    got = getattr(np, op)(device.put(x), axis=1)
    assert isinstance(got, AccelRef)
    near(device, value(device, got), getattr(np, op)(x, axis=1), steps=64)


def test_reductions_take_a_dtype_and_degrees_of_freedom(device: Device) -> None:
    x = reals(0, (4, 5), "float32")
    on = device.put(x)
    for op in ("sum", "prod", "mean"):
        near(
            device,
            value(device, getattr(on, op)(axis=0, dtype="float64")),
            getattr(np, op)(x, axis=0, dtype="float64"),
        )
    for op in SPREADS:
        near(
            device,
            value(device, getattr(on, op)(0, ddof=1)),
            getattr(np, op)(x, 0, ddof=1),
            steps=64,
        )
    with refused(device, "max takes no dtype"):
        array.reduce("max", on, dtype="float64")
    of_complex = array.zeros(device, 2, "complex64")
    with refused(device, "complex64"):
        array.sum(of_complex, dtype="float32")


PRODUCTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
)


@pytest.mark.parametrize(("left", "right"), PRODUCTS, ids=str)
def test_products_have_numpys_shapes_in_every_dtype(
    device: Device, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """Of one dtype, the product has that dtype; sums of small integers are exact."""
    for dtype in NAMES:
        x, y = small(0, left, dtype), small(1, right, dtype)
        got = value(device, device.put(x) @ device.put(y))
        exact = np.matmul(*(a.astype(np.float32) if dtype in NARROW else a for a in (x, y)))
        np.testing.assert_array_equal(got, exact.astype(x.dtype))
        assert got.dtype == x.dtype
        assert got.shape == exact.shape


def test_products_of_two_dtypes_promote(device: Device) -> None:
    for left, right in product(NAMES, NAMES):
        if left == right:
            continue
        x, y = small(0, (2, 3), left), small(1, (3, 2), right)
        expected = numpys(operator.matmul, x, y)
        ours: AccelRef = device.put(x) @ device.put(y)
        assert ours.dtype == canonical(expected.dtype)
        np.testing.assert_array_equal(value(device, ours), expected)


def test_products_that_do_not_fit_are_refused(device: Device) -> None:
    x, number = array.zeros(device, (2, 3)), array.zeros(device, ())
    stacks = array.zeros(device, (2, 2, 2)), array.zeros(device, (3, 2, 2))
    with refused(device, "inner extents 3 and 2 differ", "float32[2, 3]"):
        _ = x @ x
    with refused(device, "multiply with *"):
        _ = x @ 2
    with refused(device, "multiply with *"):
        _ = x @ number
    with refused(device, "leading axes"):
        _ = operator.matmul(*stacks)


@settings(max_examples=60)
@given(data=st.data(), seed=seeds, shape=shapes, layout=layouts)
def test_square_brackets_slice_as_numpys(
    device: Device, data: st.DataObject, seed: int, shape: tuple[int, ...], layout: Layout
) -> None:
    x = small(seed, shape, "int16")
    index = data.draw(npst.basic_indices(shape, allow_newaxis=True, max_dims=6))
    near(device, value(device, place(device, x, layout)[index]), x[index])


@settings(max_examples=60)
@given(data=st.data(), seed=seeds, shape=npst.array_shapes(max_dims=3), layout=layouts)
def test_integers_in_square_brackets_take_rows(
    device: Device, data: st.DataObject, seed: int, shape: tuple[int, ...], layout: Layout
) -> None:
    x = small(seed, shape, "float32")
    indices = data.draw(
        npst.arrays(
            st.sampled_from(["int8", "int32", "int64"]),
            npst.array_shapes(min_dims=0, min_side=0, max_dims=2),
            elements=st.integers(-shape[0], shape[0] - 1),
        )
    )
    on = place(device, x, layout)
    near(device, value(device, on[device.put(indices)]), x[indices])
    if indices.ndim == 1:
        near(device, value(device, on[indices.tolist()]), x[indices.tolist() or slice(0)])
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    wrapped = np.take(x, indices, axis, mode="wrap")
    near(device, value(device, array.take(on, indices, np.int64(axis))), wrapped)
    near(device, value(device, array.take(on, indices)), np.take(x, indices, mode="wrap"))


def test_indices_outside_wrap_around(device: Device) -> None:
    x = device.put(np.arange(3.0))
    assert value(device, x[np.array([3, -4, 7])]).tolist() == [0, 2, 1]


def test_a_mask_and_mixed_indices_are_refused_with_what_to_do(device: Device) -> None:
    x = device.put(np.arange(6.0).reshape(2, 3))
    mask = x > 2
    with refused(device, "array.where(mask, x, 0)", "gpu.run"):
        _ = x[mask]
    with refused(device, "array.where(mask, x, 0)"):
        _ = x[[True, False]]
    with refused(device, "array.take(x, indices, axis)"):
        _ = x[:, np.array([0, 1])]
    with refused(device, "float64[2, 3]", "integers"):
        _ = x[x]
    with refused(device, "[[0], [0, 1]] has rows of several lengths"):
        _ = x[[[0], [0, 1]]]
    empty, none = x[:0], array.zeros(device, 1, "int8")
    with refused(device, "nothing to take"):
        array.take(empty, none, 0)
    many, first = array.zeros(device, (1,) * 32), array.zeros(device, (1,) * 32, "int8")
    with refused(device, "Take: 63 axes are more than 32"):
        array.take(many, first, 0)


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
    with pytest.raises(TypeError, match=r"and round\(\) takes a 0-d buffer: take one element"):
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
        with pytest.raises(InvalidArgument, match="one is asked for"):
            several.item()


def test_handles_are_told_apart_by_identity(device: Device) -> None:
    x, y = array.zeros(device, 2), array.zeros(device, 2)
    assert len({x, y, x}) == 2
    assert {x: "x"}[x] == "x"
    assert isinstance(x == y, AccelRef)
    nothing: object = None
    assert operator.eq(x, nothing) is False
    assert operator.ne(x, "text") is True


def test_numpys_ufuncs_are_messages_and_arrays_are_uploaded(device: Device) -> None:
    x = np.arange(3.0)
    on = device.put(x)
    for got, expected in (
        (np.sin(on), np.sin(x)),
        (x + on, x + x),
        (np.float32(2) * on, np.float32(2) * x),
        (on - x, x - x),
        (x < on + 1, x < x + 1),
        (np.maximum(on, 1), np.maximum(x, 1)),
        (x @ on, x @ x),
        (np.matmul(on, on), x @ x),
    ):
        assert isinstance(got, AccelRef)
        near(device, got.get(), expected)
    with refused(device, "numpy.add with out", "ref.get()"):
        x += on
    with refused(device, "numpy.add with accumulate"):
        np.add.accumulate(on)
    with refused(device, "no message does numpy.cbrt", "gpu.run"):
        np.cbrt(on)


def test_a_list_or_text_is_no_operand(device: Device) -> None:
    x = array.zeros(device, 2)
    for other in ([1, 2], "text", None):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = x + other
        with pytest.raises(TypeError):
            _ = other @ x
    with refused(device, "list", "put()"):
        array.add([1], 2)  # type: ignore[arg-type]


REFUSED: dict[str, tuple[Callable[[AccelRef], object], tuple[str, ...]]] = {
    "shapes": (lambda x: x + array.zeros(x.device, 4), ("float32[2, 3]", "float32[4]", "axes")),
    "floats inverted": (lambda x: ~x, ("invert of float32", "array.cast")),
    "too large": (lambda x: x.astype("uint8") + 300, ("300", "uint8")),
    "negative power": (lambda x: x.astype("int8") ** -1, ("negative",)),
    "no such function": (lambda x: array.unary("cbrt", x), ("Unary has no 'cbrt'", "sqrt")),  # type: ignore[arg-type]
    "no operand": (lambda x: x.device.ask(array.Binary("add", None, None, 2)), ("x and y",)),
    "no number": (lambda x: x.device.ask(array.Binary("add", x, None, "2")), ("'2'", "number")),
    "three operands": (lambda x: x.device.ask(array.Binary("add", x, x, 2)), ("x and y",)),
    "axis": (lambda x: x.sum(2), ("axis 2", "float32[2, 3]")),
    "axis twice": (lambda x: x.sum((0, -2)), ("(0, -2)", "twice")),
    "two axes of a place": (lambda x: x.argmax((0, 1)), ("argmax takes one axis",)),
    "nothing": (lambda x: x[:0].max(), ("float32[0, 3]", "empty")),
    "roots in integers": (lambda x: x.std(0, dtype="int8"), ("no std of float32 in int8",)),
    "out": (lambda x: array.sum(x, out=x), ("Reduce results in float32[]", "out is")),
    "out in a tuple": (
        lambda x: array.add(x, x, out=(x,)),  # type: ignore[arg-type]
        ("Binary.out must be an AccelRef, not tuple",),
    ),
    "no buffer in a tuple": (
        lambda x: x.device.ask(array.Copy(x, ())),  # type: ignore[arg-type]
        ("Copy.out must be an AccelRef, not tuple",),
    ),
    "axis without a tuple": (
        lambda x: x.device.ask(array.Reduce("sum", x, 0)),  # type: ignore[arg-type]
        ("Reduce: axis is of type tuple[int, ...] | None, and 0 is not",),
    ),
    "texts for axes": (
        lambda x: x.device.ask(array.Transpose(x, ("a", "b"))),  # type: ignore[arg-type]
        ("Transpose: axes is of type tuple[int, ...] | None, and ('a', 'b') is not",),
    ),
    "list of words": (
        lambda x: x.device.ask(array.Unary(["sin"], x)),  # type: ignore[arg-type]
        ("Unary: op is of type Literal['negative'", "['sin'] is not"),
    ),
    "numbers missing": (
        lambda x: x.device.ask(array.Where(x, None, x)),
        ("a number for each",),
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    x = array.zeros(device, (2, 3))
    with pytest.raises(InvalidArgument) as caught:
        send(x)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float16", "float32", "int8"])
def test_where_promotes_as_the_other_functions_do(device: Device, dtype: str) -> None:
    """Of narrow floats NumPy's would be float64 beside a Python float, and none of two kinds."""
    mask = device.put(np.array([True, False]))
    x, other = array.full(device, 2, 3, dtype), array.full(device, 2, 4, "bfloat16")
    for y, number in ((0, 0), (0.5, 0.5), (True, 1), (other, 4)):
        chosen, turned = array.where(mask, x, y), array.where(mask, y, x)
        assert chosen.dtype == turned.dtype == array.maximum(x, y).dtype
        assert chosen.get().astype(float).tolist() == [3, number]
        assert turned.get().astype(float).tolist() == [number, 3]


def test_comparing_with_an_integer_that_the_dtype_lacks_is_true_or_false(device: Device) -> None:
    x = device.put(np.array([0, 255], np.uint8))
    assert (x < 300).get().tolist() == [True, True]
    assert (x == -1).get().tolist() == [False, False]


@pytest.mark.parametrize("large", [2**63, 2**64 - 1, 10**30])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "complex64"])
def test_an_integer_beyond_int64_is_a_float_beside_floats(
    device: Device, dtype: str, large: int
) -> None:
    x = array.full(device, 2, 1, dtype)
    for one in (
        x * large,
        array.where(x == 0, x, large),
        array.where(x == 0, large, x) * large,
        array.full(device, 2, large, dtype),
        blas.scal(x, large),
    ):
        np.testing.assert_allclose(one.get().astype(complex), [float(large)] * 2, rtol=2.0**-8)
    assert array.logical_and(x, large).get().all()
    assert (x != large).get().all()
    if dtype != "complex64":
        assert (x <= large).get().all()
        assert (array.minimum(large, x) == 1).get().all()
        drawn = rng.uniform(device, 2, dtype, low=large, high=large)
        np.testing.assert_allclose(drawn.get().astype(float), [float(large)] * 2, rtol=2.0**-8)
    with refused(device, "too large beside"):
        _ = x + 10**400


@pytest.mark.parametrize("in_place", ["x", "y"])
def test_out_may_be_an_operand(device: Device, in_place: str) -> None:
    x, y = array.full(device, 3, 2), array.full(device, 3, 5)
    out = {"x": x, "y": y}[in_place]
    written = array.subtract(x, y, out=out)
    assert written.id == out.id
    assert out.get().tolist() == [-3, -3, -3]
    assert array.negative(out, out=out).get().tolist() == [3, 3, 3]


def test_an_operand_of_unknown_shape_is_one_all_the_same(device: Device) -> None:
    x = device.put(np.arange(4.0))
    with unanswered(device):
        kept = device.run(lambda x: x[x > 1], x, pure=True)
        doubled = 2 * kept + kept.sum()
        product = kept @ kept
    assert doubled.get().tolist() == [9.0, 11.0]
    assert product.get() == 13.0


def test_a_failed_operand_is_the_cause(device: Device) -> None:
    with unanswered(device):
        broken = device.run(lambda: 1 // 0)
        ref = 1 + broken[0:2] * 2
    with pytest.raises(Exception, match=re.escape("never made")) as caught:
        ref.get()
    assert caught.value.__cause__ is not None
    with pytest.raises(Exception, match="ZeroDivisionError"):
        broken.result(timeout_s=30)


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
