import ml_dtypes
import numpy as np
import pytest

from accel_lab.compute.arrays import dtypes
from accel_lab.errors import InvalidArgument


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_a_name_is_its_own_canonical_form_and_survives_numpy(name: str) -> None:
    assert dtypes.canonical(name) == name
    assert dtypes.canonical(dtypes.numpy_dtype(name)) == name
    assert dtypes.canonical(dtypes.numpy_dtype(name).type) == name
    assert dtypes.itemsize(name) == np.zeros(1, dtypes.numpy_dtype(name)).nbytes


def test_the_table_has_what_the_wire_promises() -> None:
    whole = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    small = ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"]
    assert set(dtypes.NAMES) == {
        "bool",
        *whole,
        *small,
        "float32",
        "float64",
        "complex64",
        "complex128",
    }


def test_byte_order_and_spelling_do_not_change_the_name() -> None:
    for spelling in ("float32", "f4", "<f4", ">f4", np.float32, np.dtype(">f4"), "single"):
        assert dtypes.canonical(spelling) == "float32"
    assert dtypes.canonical(ml_dtypes.bfloat16) == "bfloat16"
    pythons = [dtypes.canonical(kind) for kind in (bool, int, float, complex)]
    assert pythons == ["bool", "int64", "float64", "complex128"]


@pytest.mark.parametrize(
    "wrong", [None, "float33", "S4", "M8[s]", object, [], {}, 3, "f4,f4", "f4,("]
)
def test_an_unknown_dtype_is_refused_with_the_list_of_names(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match=r"bool, int8.*bfloat16.*complex128"):
        dtypes.canonical(wrong)


def test_true_is_no_dtype_though_it_is_equal_to_something_that_has_one() -> None:
    assert dtypes.canonical(np.int8(1)) == "int8"
    with pytest.raises(InvalidArgument, match="dtype True is not one of"):
        dtypes.canonical(True)  # noqa: FBT003


def test_an_unknown_name_is_refused_by_every_question() -> None:
    for question in (
        dtypes.itemsize,
        dtypes.numpy_dtype,
        dtypes.is_float,
        dtypes.is_complex,
        dtypes.real_of,
    ):
        with pytest.raises(InvalidArgument, match="float33"):
            question("float33")


def test_every_name_is_of_one_kind() -> None:
    floats = {name for name in dtypes.NAMES if dtypes.is_float(name)}
    complexes = {name for name in dtypes.NAMES if dtypes.is_complex(name)}
    assert floats == {name for name in dtypes.NAMES if "float" in name}
    assert complexes == {"complex64", "complex128"}
    assert {name: dtypes.real_of(name) for name in complexes} == {
        "complex64": "float32",
        "complex128": "float64",
    }
    assert all(dtypes.real_of(name) == name for name in dtypes.NAMES if name not in complexes)
    assert all(dtypes.complex_of(dtypes.real_of(name)) == name for name in complexes)
    assert dtypes.complex_of("float16") == dtypes.complex_of("int64") == "complex64"
