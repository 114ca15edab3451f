"""Every function of the array API namespace does what array-api-strict's does.

That is the oracle: what it takes, the standard has, and nothing else. Integers are small, so that
sums and products are exact; floats have their special values.
"""

import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array_api
from accel_lab.compute.arrays.dtypes import is_complex, is_float
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from tests.contract.samples import seeds
from tests.contract.tolerances import EPS

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
KINDS = {
    "all": ("bool", *INTEGERS, *FLOATS, *COMPLEX),
    "numeric": (*INTEGERS, *FLOATS, *COMPLEX),
    "real": (*INTEGERS, *FLOATS),
    "floating": (*FLOATS, *COMPLEX),
    "real floating": FLOATS,
    "complex": COMPLEX,
    "integral": INTEGERS,
    "bits": ("bool", *INTEGERS),
    "bool": ("bool",),
}
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


class Given(NamedTuple):
    """What a function is called with; arrays are NumPy's here."""

    operands: tuple[Any, ...]
    options: dict[str, Any]


def called(*operands: Any, **options: Any) -> Given:
    return Given(operands, options)


def values(seed: int, shape: tuple[int, ...], dtype: str, *, special: bool = False) -> Any:
    """Draw small integers; of floats also halves and, on request, special values."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.startswith("u") else -3
    drawn = np.asarray(rng.integers(low, 4, shape)).astype(dtype)
    if dtype in INTEGERS:
        return drawn
    drawn = np.asarray(drawn + rng.integers(0, 2, shape) / 2).astype(dtype)
    if dtype in COMPLEX:
        return np.asarray(drawn + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    if special:
        at = rng.integers(0, 8, shape)
        for number, one in enumerate(SPECIAL):
            drawn = np.where(at == number, one, drawn).astype(dtype)
    return drawn


def an_array(draw: Draw, kind: str, dtype: str = "", *, special: bool = False, **shape: int) -> Any:
    """Draw an array of a kind, or of a dtype."""
    sides = {"min_dims": 0, "max_dims": 3, "min_side": 0, "max_side": 4} | shape
    extents = draw(npst.array_shapes(**sides))
    made = dtype or draw(st.sampled_from(KINDS[kind]))
    return values(draw(seeds), extents, made, special=special)


def axis_of(draw: Draw, x: Any) -> int:
    axis: int = draw(st.integers(-x.ndim, x.ndim - 1))
    return axis


def axes_of(draw: Draw, x: Any) -> Any:
    """Draw an axis, several, or None for all."""
    if not x.ndim or draw(st.booleans()):
        return None
    several = draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))
    return tuple(several) if len(several) > 1 else several.pop()


Case: TypeAlias = Callable[[Draw], Given]


def one(kind: str, *, special: bool = True) -> Case:
    return lambda draw: called(an_array(draw, kind, special=special))


def two(kind: str, *, positive: bool = False, special: bool = True) -> Case:
    """Give two arrays that broadcast, of one dtype; or an array and a number."""

    def case(draw: Draw) -> Given:
        shapes = draw(npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
        dtype = draw(st.sampled_from(KINDS[kind]))
        x, y = (values(draw(seeds), s, dtype, special=special) for s in shapes.input_shapes)
        if positive:
            x, y = (np.asarray(np.abs(one) + np.ones((), dtype), dtype) for one in (x, y))
        number = {"b": True, "c": 2.5}.get(x.dtype.kind, 2)
        return called(x, draw(st.sampled_from([y, number])))

    return case


def reduced(kind: str, *, empty: bool = True, special: bool = True, **options: Any) -> Case:
    def case(draw: Draw) -> Given:
        x = an_array(draw, kind, special=special, min_side=0 if empty else 1)
        extra = {name: draw(choice) for name, choice in options.items()}
        return called(x, axis=axes_of(draw, x), keepdims=draw(st.booleans()), **extra)

    return case


def along(kind: str, *, empty: bool = True, **options: Any) -> Case:
    def case(draw: Draw) -> Given:
        x = an_array(draw, kind, min_dims=1, min_side=0 if empty else 1)
        extra = {name: draw(choice) for name, choice in options.items()}
        return called(x, axis=axis_of(draw, x), **extra)

    return case


def place(draw: Draw) -> Given:
    x = an_array(draw, "real", min_side=1)
    axis = axis_of(draw, x) if x.ndim and draw(st.booleans()) else None
    return called(x, axis=axis, keepdims=draw(st.booleans()))


def broadcasting(draw: Draw) -> list[Any]:
    shapes = draw(npst.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))
    return [values(draw(seeds), shape, "int32") for shape in shapes.input_shapes]


def joined(draw: Draw) -> Given:
    x = an_array(draw, "all", min_dims=1)
    return called([x, x, x], axis=axis_of(draw, x))


def products(draw: Draw) -> Given:
    m, k, n, batch = (draw(st.integers(0, 4)) for _ in range(4))
    dtype = draw(st.sampled_from(KINDS["numeric"]))
    left = draw(st.sampled_from([(k,), (m, k), (batch, m, k)]))
    right = draw(st.sampled_from([(k,), (k, n), (1, k, n)]))
    return called(values(draw(seeds), left, dtype), values(draw(seeds), right, dtype))


def contracted(draw: Draw) -> Given:
    dtype = draw(st.sampled_from(KINDS["numeric"]))
    axes, x_shape, y_shape = draw(
        st.sampled_from(
            [(2, (2, 3, 4), (3, 4)), (0, (2,), (3,)), (((0, 2), (1, 0)), (2, 3, 4), (4, 2, 5))]
        )
    )
    x, y = values(draw(seeds), x_shape, dtype), values(draw(seeds), y_shape, dtype)
    return called(x, y, axes=axes)


def dotted(draw: Draw) -> Given:
    dtype = draw(st.sampled_from(KINDS["numeric"]))
    shape = draw(st.sampled_from([(3,), (2, 3), (0, 3)]))
    x, y = values(draw(seeds), shape, dtype), values(draw(seeds), (3,), dtype)
    return called(x, y, axis=-1)


def searched(draw: Draw) -> Given:
    x1 = an_array(draw, "", "float64", min_dims=1, max_dims=1)
    x2 = an_array(draw, "", "float64")
    side = draw(st.sampled_from(["left", "right"]))
    if draw(st.booleans()):
        return called(np.sort(x1), x2, side=side)
    return called(x1, x2, side=side, sorter=np.argsort(x1, kind="stable"))


def taken(draw: Draw) -> Given:
    x = an_array(draw, "all", min_dims=1, min_side=1)
    axis = axis_of(draw, x)
    at = draw(st.lists(st.integers(-x.shape[axis], x.shape[axis] - 1), max_size=4))
    return called(x, np.asarray(at, "int64"), axis=axis)


def taken_along(draw: Draw) -> Given:
    x = an_array(draw, "all", min_dims=1, min_side=1)
    axis = axis_of(draw, x)
    extent = x.shape[axis]
    at = np.random.default_rng(draw(seeds)).integers(-extent, extent, x.shape)
    return called(x, at, axis=axis)


def chosen(draw: Draw) -> Given:
    condition, x, y = broadcasting(draw)
    return called(np.asarray(condition > 0), x, draw(st.sampled_from([y, 5])))


def reshaped(draw: Draw) -> Given:
    x = an_array(draw, "all")
    return called(x, draw(st.sampled_from([(x.size,), (1, x.size), (x.size, 1)])), copy=None)


def rolled(draw: Draw) -> Given:
    x = an_array(draw, "all", min_dims=1)
    by = draw(st.integers(-5, 5))
    return called(x, by, axis=draw(st.sampled_from([None, axis_of(draw, x)])))


def ones_like_it(draw: Draw, *more: Any) -> Given:
    x = an_array(draw, "all")
    return called(x, *more, dtype=draw(st.sampled_from([None, "float64"])))


def clipped(draw: Draw) -> Given:
    x = an_array(draw, "real", special=True)
    low = draw(st.sampled_from([None, 1, values(1, (), str(x.dtype))]))
    return called(x, low, draw(st.sampled_from([None, 3])))


def unary(kind: str, names: str, **options: Any) -> dict[str, Case]:
    return dict.fromkeys(names.split(), one(kind, **options))


def binary(kind: str, names: str, **options: Any) -> dict[str, Case]:
    return dict.fromkeys(names.split(), two(kind, **options))


SHAPES = st.sampled_from([(), 3, (2, 0), (2, 3)])
DTYPES = st.sampled_from([None, *KINDS["numeric"]])
NORMS = st.sampled_from(["backward", "ortho", "forward"])
CASES: dict[str, Case] = {
    # Complex functions have finite values alone here: of others C libraries differ.
    **unary("floating", "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log10"),
    **unary("floating", "log2 reciprocal sin sinh sqrt tan tanh"),
    **unary("numeric", "abs negative positive sign square conj isfinite isinf isnan round"),
    **unary("real", "ceil floor trunc"),
    **unary("complex", "imag real"),
    **unary("real floating", "signbit"),
    **unary("bool", "logical_not"),
    **unary("bits", "bitwise_invert"),
    **unary("all", "unique_all unique_counts unique_inverse unique_values"),
    **binary("numeric", "add multiply subtract"),
    **binary("floating", "divide"),
    **binary("floating", "pow", positive=True),
    **binary("real", "floor_divide remainder", positive=True, special=False),
    **binary("real", "greater greater_equal less less_equal maximum minimum"),
    **binary("all", "equal not_equal"),
    **binary("real floating", "atan2 copysign hypot logaddexp nextafter"),
    **binary("bits", "bitwise_and bitwise_or bitwise_xor"),
    **binary("integral", "bitwise_left_shift bitwise_right_shift", positive=True),
    **binary("bool", "logical_and logical_or logical_xor"),
    "clip": clipped,
    **dict.fromkeys(("all", "any"), reduced("all")),
    **dict.fromkeys(("max", "min"), reduced("real", empty=False)),
    **dict.fromkeys(("sum", "prod"), reduced("numeric", dtype=st.just(None))),
    "mean": reduced("floating", special=False, empty=False),
    **dict.fromkeys(
        ("std", "var"),
        reduced("real floating", special=False, empty=False, correction=st.sampled_from([0, 0.5])),
    ),
    "count_nonzero": reduced("all"),
    **dict.fromkeys(
        ("cumulative_sum", "cumulative_prod"), along("numeric", include_initial=st.booleans())
    ),
    "diff": along("numeric", n=st.integers(0, 2)),
    **dict.fromkeys(("argmax", "argmin"), place),
    **dict.fromkeys(("sort", "argsort"), along("real", descending=st.booleans())),
    "nonzero": lambda draw: called(an_array(draw, "all", min_dims=1)),
    "searchsorted": searched,
    "take": taken,
    "take_along_axis": taken_along,
    "where": chosen,
    "isin": lambda draw: called(an_array(draw, "", "int32"), an_array(draw, "", "int32")),
    "matmul": products,
    "matrix_transpose": lambda draw: called(an_array(draw, "all", min_dims=2)),
    "tensordot": contracted,
    "vecdot": dotted,
    "broadcast_arrays": lambda draw: called(*broadcasting(draw)),
    "broadcast_to": lambda draw: called(
        an_array(draw, "all", max_dims=1, min_side=1, max_side=1), (2, 1)
    ),
    "broadcast_shapes": lambda draw: called(*(x.shape for x in broadcasting(draw))),
    **dict.fromkeys(("concat", "stack"), joined),
    "expand_dims": lambda draw: called(an_array(draw, "all"), draw(st.sampled_from([0, -1]))),
    "flip": lambda draw: called(x := an_array(draw, "all"), axis=axes_of(draw, x)),
    "moveaxis": lambda draw: called(an_array(draw, "all", min_dims=2), 0, -1),
    "permute_dims": lambda draw: called(
        x := an_array(draw, "all"), tuple(draw(st.permutations(range(x.ndim))))
    ),
    "repeat": lambda draw: called(
        an_array(draw, "all", min_dims=1, min_side=2, max_side=2),
        draw(st.sampled_from([0, 3, np.asarray([2, 1])])),
        axis=0,
    ),
    "reshape": reshaped,
    "roll": rolled,
    "squeeze": lambda draw: called(an_array(draw, "all")[None], 0),
    "tile": lambda draw: called(an_array(draw, "all"), draw(st.sampled_from([(2,), (1, 2, 0)]))),
    "unstack": along("all"),
    "arange": lambda draw: called(
        draw(st.integers(-4, 4)), draw(st.integers(-4, 9)), 2, dtype=draw(st.just("float32"))
    ),
    "linspace": lambda draw: called(
        draw(st.sampled_from([0.0, 1.5, 1 + 2j])), 3.0, draw(st.integers(2, 5)), endpoint=False
    ),
    "eye": lambda draw: called(3, draw(st.sampled_from([None, 0, 4])), k=draw(st.integers(-4, 4))),
    **dict.fromkeys(("zeros", "ones"), lambda draw: called(draw(SHAPES), dtype=draw(DTYPES))),
    "full": lambda draw: called(draw(SHAPES), draw(st.sampled_from([True, 2, 2.5, 1j]))),
    **dict.fromkeys(("zeros_like", "ones_like"), ones_like_it),
    "full_like": lambda draw: ones_like_it(draw, 1),
    "meshgrid": lambda draw: called(
        *(an_array(draw, "", "int32", min_dims=1, max_dims=1) for _ in range(3)),
        indexing=draw(st.sampled_from(["xy", "ij"])),
    ),
    **dict.fromkeys(
        ("tril", "triu"),
        lambda draw: called(an_array(draw, "all", min_dims=2), k=draw(st.integers(-4, 4))),
    ),
    "asarray": lambda draw: called(
        draw(st.sampled_from([True, 3, 2.5, 1j, [[1, 2], [3, 4]], [1.0, 2], []]))
    ),
    "astype": lambda draw: called(
        an_array(draw, "real"), draw(st.sampled_from(["float32", "bool", "complex64"]))
    ),
    **{
        f"fft.{name}": along("complex", empty=False, n=st.sampled_from([None, 1, 5]), norm=NORMS)
        for name in ("fft", "ifft")
    },
    "fft.rfft": along("real floating", empty=False, n=st.sampled_from([None, 5]), norm=NORMS),
    "fft.ihfft": along("real floating", empty=False, n=st.sampled_from([None, 5]), norm=NORMS),
    **{
        f"fft.{name}": along("complex", empty=False, n=st.sampled_from([4, 5]), norm=NORMS)
        for name in ("irfft", "hfft")
    },
    **{
        f"fft.{name}": lambda draw: called(
            an_array(draw, "complex", min_dims=2, min_side=2), axes=(0, 1), norm=draw(NORMS)
        )
        for name in ("fftn", "ifftn", "irfftn")
    },
    "fft.rfftn": lambda draw: called(
        an_array(draw, "real floating", min_dims=2, min_side=1), axes=(1, 0), norm=draw(NORMS)
    ),
    **{
        f"fft.{name}": lambda draw: called(draw(st.integers(1, 7)), d=draw(st.just(0.5)))
        for name in ("fftfreq", "rfftfreq")
    },
    **{
        f"fft.{name}": lambda draw: called(
            x := an_array(draw, "floating", min_dims=1), axes=axes_of(draw, x)
        )
        for name in ("fftshift", "ifftshift")
    },
}
ASKED_ELSEWHERE = {"empty", "empty_like", "from_dlpack", "can_cast", "finfo", "iinfo", "isdtype"}
ASKED_ELSEWHERE |= {"result_type"}


def functions(namespace: ModuleType) -> set[str]:
    return {name for name in namespace.__all__ if inspect.isfunction(getattr(namespace, name))}


def test_every_function_of_the_standard_is_compared() -> None:
    theirs = {name for name in functions(array_api_strict) if not re.search("__|flags", name)}
    theirs |= {f"fft.{name}" for name in functions(array_api_strict.fft)}
    assert theirs == CASES.keys() | ASKED_ELSEWHERE


@pytest.mark.parametrize("name", CASES)
def test_a_function_is_array_api_stricts(device: Device, name: str) -> None:
    @settings(max_examples=6)
    @given(data=st.data())
    def compare(data: st.DataObject) -> None:
        given_ = CASES[name](data.draw)
        with np.errstate(all="ignore"):
            expected = call(array_api_strict, name, given_)
        with array_api.use_device(device):
            made = call(array_api, name, given_)
        assert_alike(made, expected)

    compare()


def call(namespace: Any, name: str, given_: Given) -> Any:
    """Call a function of a namespace with arrays and dtypes of its own."""
    function: Any = namespace
    for part in name.split("."):
        function = getattr(function, part)

    def own(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return namespace.asarray(value)
        if isinstance(value, list) and any(isinstance(part, np.ndarray) for part in value):
            return [*map(own, value)]
        return getattr(namespace, value) if value in KINDS["all"] else value

    options = {key: own(value) for key, value in given_.options.items()}
    return function(*map(own, given_.operands), **options)


def assert_alike(made: Any, expected: Any) -> None:
    """Compare arrays, or tuples of them; floats within a few roundings."""
    if isinstance(expected, tuple | list):
        assert len(made) == len(expected)
        assert getattr(made, "_fields", ()) == getattr(expected, "_fields", ())
        for one_, other in zip(made, expected, strict=True):
            assert_alike(one_, other)
        return
    if isinstance(expected, int):
        assert made == expected
        return
    assert isinstance(made, AccelRef)
    got, exact = made.get(), np.asarray(expected)
    assert (got.shape, str(made.dtype), got.dtype) == (exact.shape, str(exact.dtype), exact.dtype)
    name = str(exact.dtype)
    near = 64 * EPS[name] if is_float(name) or is_complex(name) else 0
    np.testing.assert_allclose(got, exact, rtol=near, atol=near)
