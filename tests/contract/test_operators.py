"""The operators and functions of buffers, against NumPy: shapes, dtypes and values."""

import operator
from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array, blas, rng
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.elementwise import BINARY, UNARY, BinaryOp, UnaryOp
from tests.contract.numpys import DTYPES, NARROW, compare, near, numpys
from tests.contract.samples import layouts, place, refused, seeds, small, unanswered, value

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


def positive(x: Any) -> Any:
    """Return an array without the values that leave NumPy's integer powers and shifts undefined."""
    return np.abs(x) if x.dtype.kind == "i" else x


def without_zeros(device: Device, x: Any) -> Any:
    """Return divisors for which CuPy has NumPy's answer; of a complex number by 0 it has not."""
    return x if device.name.startswith("cpu") else np.where(x == 0, 1, x).astype(x.dtype)


def made_dtype(function: Callable[..., Any], x: Any, y: Any) -> str:
    """Return the dtype that NumPy's function makes; "" where there is no such function."""
    made = numpys(function, x, y)
    return "" if isinstance(made, type) else str(made.dtype)


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
        if op == "nextafter" and made_dtype(np.nextafter, x, y) in NARROW:
            on = device.put(x), device.put(y)
            with refused(device, "there is no nextafter of"):
                array.nextafter(*on)
            continue
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


def wheres(mask: Any, x: Any, y: Any) -> Any:
    """Return NumPy's choice, in the dtype that its other functions have, of narrow floats, too."""
    dtype = np.maximum(x, y).dtype
    return np.where(mask, np.asarray(x).astype(dtype), np.asarray(y).astype(dtype))


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
    compare(device, wheres, array.where, *arrays)


def test_where_takes_numbers_for_either_choice(device: Device) -> None:
    for dtype, number in product(NAMES, NUMBERS):
        mask, x = np.array([True, False, True]), small(3, (3,), dtype)
        compare(device, wheres, array.where, mask, x, number)
        compare(device, wheres, array.where, mask, number, x)
    compare(device, wheres, array.where, np.array([0.0, 2.0]), 1, 0.5)


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
    with refused(device, "numpy.cbrt has no message", "gpu.run"):
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
    "axis without a tuple": (
        lambda x: x.device.ask(array.Reduce("sum", x, 0)),
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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("power", [-1, 0.5, 2])
def test_a_root_a_square_and_a_reciprocal_are_numpys_at_the_ends(
    device: Device, dtype: str, power: float
) -> None:
    ends = np.array([-np.inf, np.inf, -0.0, 0.0, np.nan, -1.0, -4.0, 4.0])
    x: Any = ends.astype(dtype)
    if dtype.startswith("complex"):
        x = np.concatenate([x, (1j * ends[-3:]).astype(dtype)])
    if dtype.startswith("complex") and power == -1 and not device.name.startswith("cpu"):
        x = x[np.isfinite(x)]  # CuPy's quotient of a complex infinity is NaN
    on = device.put(x)
    with np.errstate(all="ignore"):
        expected = x**power
    # CuPy's root of a complex number may round otherwise in the last place.
    rtol = 0.0 if device.name.startswith("cpu") else 2 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose((on**power).get(), expected, rtol=rtol, atol=0)
    on **= power
    np.testing.assert_allclose(on.get(), expected, rtol=rtol, atol=0)


def len_of(number: int) -> str:
    return f"{'-' * (number < 0)}{number.bit_length()}-bits"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize(
    "far", [300, -1, 2**63, 2**64, 2**70, -(2**63) - 1, -(2**70), 10**400], ids=len_of
)
def test_integers_are_compared_and_divided_with_any_other_as_numpys(
    device: Device, dtype: str, far: int
) -> None:
    x = np.array([0, 1, 1]).astype(dtype)
    on = device.put(x)
    for op in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "divide"):
        function: Any = getattr(np, op)
        for swapped in (False, True):
            operands = (far, x) if swapped else (x, far)
            try:
                with np.errstate(all="ignore"):
                    expected = function(*operands)
            except OverflowError:
                with refused(device):
                    array.binary(op, *((far, on) if swapped else (on, far)))
                continue
            made = array.binary(op, *((far, on) if swapped else (on, far)))
            near(device, made.get(), expected)
    if dtype != "bool":
        assert (far in on) is bool((x == far).any())


@pytest.mark.parametrize("op", ["add", "multiply", "arctan2", "maximum", "bitwise_and", "power"])
def test_an_integer_beyond_64_bits_is_refused_by_all_else(device: Device, op: Any) -> None:
    on = array.full(device, 2, 1, "int64")
    for operands in ((on, 2**70), (-(2**70), on)):
        with refused(device, "an integer beyond 64 bits has no place beside int64"):
            array.binary(op, *operands)


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


def test_an_operand_of_unknown_shape_is_one_all_the_same(device: Device) -> None:
    x = device.put(np.arange(4.0))
    with unanswered(device):
        kept = device.run(lambda x: x[x > 1], x, pure=True)
        doubled = 2 * kept + kept.sum()
        product = kept @ kept
    assert doubled.get().tolist() == [9.0, 11.0]
    assert product.get() == 13.0
