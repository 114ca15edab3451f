"""The contract of `libraries.arguments`: the kernel's own signature types what it is given."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, jit
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.samples import Layout, place, value

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0

NUMBERS = {
    "bool": "bool",
    "signed char": "int8",
    "short": "int16",
    "int": "int32",
    "long long": "int64",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long long": "uint64",
    "float": "float32",
    "double": "float64",
}
"""C++ types of numbers, and the dtypes whose values they hold."""

PLACES = {kind: index for index, kind in enumerate(NUMBERS)}

# One compilation for all types: every number that is passed is written to a buffer of its type.
EVERY = "".join(f"\n  *out{i} = in{i};" for i in range(len(NUMBERS)))
ECHO = (
    'extern "C" __global__ void echo(\n    '
    + ", ".join(f"{kind} in{i}" for i, kind in enumerate(NUMBERS))
    + ",\n    "
    + ", ".join(f"{kind}* out{i}" for i, kind in enumerate(NUMBERS))
    + f") {{{EVERY}\n}}\n"
)

STRUCT = np.dtype([("factor", "f4"), ("count", "i4"), ("offset", "f8")])
POINTS = """
struct Point { float factor; int count; double offset; };
__global__ void apply(Point p, double* y) { y[threadIdx.x] = p.factor * p.count + p.offset; }
"""
FILL = "__global__ void fill(float* x, float v) { x[threadIdx.x] = v; }"


@pytest.fixture(scope="module")
def echo(device: Device) -> jit.Kernel:
    return jit.compile(device, ECHO, "echo").result(WAIT_S)


@pytest.fixture(scope="module")
def outs(device: Device) -> list[Any]:
    return [array.zeros(device, (1,), dtype) for dtype in NUMBERS.values()]


def values_of(dtype: str) -> st.SearchStrategy[Any]:
    native = numpy_dtype(dtype)
    if native.kind == "b":
        return st.booleans()
    if native.kind in "iu":
        bounds = np.iinfo(native)
        return st.integers(int(bounds.min), int(bounds.max))
    return st.floats(width=32 if native.itemsize == 4 else 64)


@settings(max_examples=30)
@given(
    numbers=st.tuples(*map(values_of, NUMBERS.values())),
    as_numpy=st.booleans(),
)
def test_a_number_arrives_as_the_parameter_s_type(
    device: Device, echo: jit.Kernel, outs: list[Any], numbers: tuple[Any, ...], as_numpy: Any
) -> None:
    dtypes = [numpy_dtype(name) for name in NUMBERS.values()]
    given = [t.type(v) for t, v in zip(dtypes, numbers, strict=True)] if as_numpy else numbers
    echo(1, 1, (*given, *outs)).result(WAIT_S)
    for out, number, dtype in zip(outs, numbers, dtypes, strict=True):
        np.testing.assert_array_equal(value(device, out), np.array([number], dtype))


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("bool", 2),
        ("signed char", 128),
        ("signed char", -129),
        ("short", 2**15),
        ("int", 2**31),
        ("int", 1.0),
        ("int", "1"),
        ("unsigned char", -1),
        ("unsigned short", 65536),
        ("unsigned int", -1),
        ("unsigned long long", -1),
        ("long long", 2**63),
        ("float", 1e39),
        ("float", 10**400),
        ("float", 1j),
        ("double", b"12345678"),
    ],
)
def test_a_number_that_does_not_fit_is_refused_with_its_place(
    echo: jit.Kernel, outs: list[Any], kind: str, number: Any
) -> None:
    given: list[Any] = [False, *([0] * 10)]
    given[PLACES[kind]] = number
    with pytest.raises(InvalidArgument) as caught:
        echo(1, 1, (*given, *outs)).result(WAIT_S)
    text = str(caught.value)
    if "kernel takes" not in text and "cannot be sent" not in text:  # nothing that travels
        assert f"argument {PLACES[kind]} of echo" in text
        assert f"parameter is {kind}" in text


def test_a_wrong_count_names_the_signature(device: Device) -> None:
    kernel = jit.compile(device, FILL, "fill")
    for args in [
        (),
        (array.zeros(device, 4, "float32"),),
        (array.zeros(device, 4, "float32"), 1, 2),
    ]:
        with pytest.raises(
            InvalidArgument, match=rf"2 arguments \(float\*, float\), not {len(args)}"
        ):
            kernel(1, 4, args).result(WAIT_S)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("x64", 1.0), r"argument 0 of fill is float64\[4\].*float\*.*array\.cast"),
        (("x", "x"), r"argument 1 of fill is float32\[4\].*parameter is float"),
        ((7, 1.0), r"argument 0 of fill is the int 7.*float\*.*give a buffer"),
        ((1.5, "x"), r"argument 0 of fill is the float 1.5"),
        (("x", None), r"argument 1 of fill is None, and .* float"),
    ],
)
@pytest.mark.parametrize("before", [False, True], ids=["at first", "after a launch"])
def test_a_wrong_kind_of_argument_is_named(
    device: Device, args: Any, said: str, *, before: bool
) -> None:
    buffers = {
        "x": array.zeros(device, 4, "float32"),
        "x64": array.zeros(device, 4, "float64"),
    }
    kernel = jit.compile(device, FILL, "fill")
    given = [buffers.get(arg, arg) if isinstance(arg, str) else arg for arg in args]
    if before:
        kernel(1, 4, (buffers["x"], 1.0)).result(WAIT_S)
    with pytest.raises(InvalidArgument, match=said):
        kernel(1, 4, given).result(WAIT_S)


@pytest.mark.parametrize(
    "thing",
    [np.str_("5"), np.datetime64("2020-01-01"), np.timedelta64(1, "s"), "5", [5], slice(5)],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_no_number_is_refused_at_the_call(device: Device, thing: Any) -> None:
    kernel = jit.compile(device, FILL, "fill")
    with pytest.raises(InvalidArgument, match=f"and no {type(thing).__name__}"):
        kernel(1, 4, (None, thing))


def test_one_argument_is_not_taken_for_several(device: Device) -> None:
    kernel = jit.compile(device, FILL, "fill")
    args: Any
    for args in (array.zeros(device, 2), np.zeros(2), "fi", b"fi", 5, None):
        with pytest.raises(InvalidArgument, match=r"args are .* in a tuple, as .*\(x,\), not"):
            kernel(1, 4, args)


def test_a_numpy_array_is_refused_at_the_call(device: Device) -> None:
    kernel = jit.compile(device, FILL, "fill")
    with pytest.raises(InvalidArgument, match=r"float32\[4\]; put\(\) it"):
        kernel(1, 4, (np.zeros(4, "f"), 1))


@pytest.mark.parametrize("layout", ["transposed", "stepped", "reversed"])
def test_a_view_with_gaps_is_refused(device: Device, layout: Layout) -> None:
    view = place(device, np.zeros((4, 3), "f"), layout)
    kernel = jit.compile(device, FILL, "fill")
    with pytest.raises(InvalidArgument, match=r"argument 0 .* with gaps.*copy it first"):
        kernel(1, 4, (view, 1)).result(WAIT_S)
    copied = array.copy(view)
    kernel(1, 12, (copied, 1)).result(WAIT_S)
    assert (value(device, copied) == 1).all()


def test_a_contiguous_part_is_written_in_place(device: Device) -> None:
    whole = array.zeros(device, (4, 3), "float32")
    jit.compile(device, FILL, "fill")(1, 3, (array.slice(whole, 2), 5)).result(WAIT_S)
    assert value(device, whole).tolist() == [[0, 0, 0], [0, 0, 0], [5, 5, 5], [0, 0, 0]]


def test_a_view_at_the_wrong_place_for_a_vector_type_is_refused(device: Device) -> None:
    source = "__global__ void swap(float4* x) { float a = x->x; x->x = x->w; x->w = a; }"
    kernel = jit.compile(device, source, "swap")
    x = device.put(np.arange(8, dtype="f"))
    with pytest.raises(InvalidArgument, match=r"multiple of 16 bytes.*copy it first"):
        kernel(1, 1, (array.slice(x, slice(1, None)),)).result(WAIT_S)
    kernel(1, 1, (array.slice(x, slice(4, None)),)).result(WAIT_S)
    assert value(device, x).tolist() == [0, 1, 2, 3, 7, 5, 6, 4]


def test_memory_of_any_kind_takes_any_dtype(device: Device) -> None:
    source = """
    struct Pair { int a, b; };
    __global__ void zero(void* a, char* b, unsigned char* c, Pair* d, const void* e) {
      *(int*)a = *(int*)b = *(int*)c = d->a = *(const int*)e;
    }"""
    kernel = jit.compile(device, source, "zero")
    seven = device.put(np.array([7, 0]))
    given = [array.zeros(device, 4, name) for name in ("float64", "int32", "complex64", "uint16")]
    kernel(1, 1, (*given, seven)).result(WAIT_S)
    for buffer in given:
        assert value(device, buffer).view(np.int32)[0] == 7


def test_none_is_a_pointer_to_nothing(device: Device) -> None:
    source = "__global__ void tell(const float* x, int* y) { *y = x ? 1 : 2; }"
    kernel = jit.compile(device, source, "tell")
    x, y = array.zeros(device, 1, "float32"), array.zeros(device, 1, "int32")
    for pointer, said in ((None, 2), (x, 1), (None, 2), (0, 2)):
        kernel(1, 1, (pointer, y)).result(WAIT_S)
        assert value(device, y)[0] == said


def test_a_struct_is_passed_by_its_bytes(device: Device) -> None:
    kernel = jit.compile(device, POINTS, "apply")
    point = np.array((1.5, 4, -2.0), STRUCT)[()]
    y = array.zeros(device, 3, "float64")
    for struct in (point, point.tobytes()):
        kernel(1, 3, (struct, y)).result(WAIT_S)
        assert value(device, y).tolist() == [4.0] * 3
    with pytest.raises(InvalidArgument, match=r"argument 0 of apply is 12 bytes.*of 16 bytes"):
        kernel(1, 3, (point.tobytes()[:12], y)).result(WAIT_S)
    with pytest.raises(InvalidArgument, match="argument 0 of apply is the int 3"):
        kernel(1, 3, (3, y)).result(WAIT_S)


def test_a_complex_number_is_two_floats(device: Device) -> None:
    source = "__global__ void set(float2 z, double2 w, float2* x, double2* y) { *x = z; *y = w; }"
    x, y = array.zeros(device, 1, "complex64"), array.zeros(device, 1, "complex128")
    kernel = jit.compile(device, source, "set")
    for wide in (np.complex128(3 + 4j), np.clongdouble(3 + 4j)):
        kernel(1, 1, (1 - 2j, wide, x, y)).result(WAIT_S)
        assert value(device, x)[0] == 1 - 2j
        assert value(device, y)[0] == 3 + 4j
        array.copy(array.zeros(device, 1, "complex128"), out=y)


def test_numbers_may_change_while_buffers_stay(device: Device) -> None:
    """What has been checked is remembered, what has not is not."""
    kernel = jit.compile(device, FILL, "fill")
    x, other = array.zeros(device, 4, "float32"), array.zeros(device, 4, "int32")
    for number in (1.0, math.pi, -0.0, 7):
        kernel(1, 4, (x, number))
        np.testing.assert_array_equal(value(device, x), np.full(4, number, "f"))
    with pytest.raises(InvalidArgument, match="int32"):
        kernel(1, 4, (other, 1.0)).result(WAIT_S)
    with pytest.raises(InvalidArgument, match="not 3"):
        kernel(1, 4, (x, 1.0, 2.0)).result(WAIT_S)
    kernel(1, 4, (x, 3.0)).result(WAIT_S)
    assert value(device, x).tolist() == [3.0] * 4
