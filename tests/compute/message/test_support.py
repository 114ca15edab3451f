"""A pair of (operation, dtype) that a backend lacks is refused by name, from its one table."""

import pytest

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Put
from accel_lab.compute.message.operation import travelling
from accel_lab.compute.message.support import check, name_of
from accel_lab.errors import UnsupportedDtype
from accel_lab.libraries.array.library import Copy, Full, Zeros

TABLE = {"array.Zeros": frozenset({"float32", "int8"})}


def test_a_pair_in_the_table_passes() -> None:
    check(TABLE, Zeros((2,), "int8"))


def test_a_dtype_that_is_missing_is_refused_with_those_there_are() -> None:
    expected = r"^cuda has no array\.Zeros of bool; it has array\.Zeros of float32, int8$"
    with pytest.raises(UnsupportedDtype, match=expected):
        check(TABLE, Zeros((2,), "bool"), backend="cuda")


def test_an_operation_that_is_missing_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        UnsupportedDtype, match=r"no array\.Full of int8; its operations are array\.Z"
    ):
        check(TABLE, Full((2,), 1, "int8"))


def test_moving_bytes_needs_no_entry() -> None:
    check({}, Put((1,), "bool", b"\0"))


def test_every_library_operation_has_a_name_of_its_own() -> None:
    kinds = [kind for kind in travelling() if kind.__module__.startswith("accel_lab.libraries")]
    names = [name_of(kind) for kind in kinds]
    assert len(set(names)) == len(names) > 10
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds)


def test_an_operand_of_another_dtype_can_be_converted() -> None:
    operand = AccelRef.__new__(AccelRef)
    operand.learn((2,), "bool")
    with pytest.raises(UnsupportedDtype, match=r"of int8; convert with array\.cast$"):
        check({"array.Copy": frozenset({"int8"})}, Copy(operand))
