"""What can be put, and what a refusal says."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.errors import InvalidArgument


@pytest.fixture(scope="module")
def cpu() -> Iterator[Device]:
    with System("host") as lab:
        yield lab.devices[0]


class Table:
    """As a DataFrame whose columns are of different kinds."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.array([[1.0, "a"]], dtype=dtype or object, copy=copy)

    def to_numpy(self, dtype: Any) -> np.ndarray[Any, Any]:
        return np.zeros(2, dtype)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.ma.array([1.0, 2.0], mask=[False, True]), "masked array.*filled"),
        (Table(), r"turns this Table into Python objects.*to_numpy\(dtype\)"),
        (None, r"turns this NoneType into Python objects"),
        ([[1.0, 2.0], [3.0]], "no array: .*inhomogeneous"),
        (["a"], "dtype <U1 is not one of bool, "),
        (np.zeros(2, [("a", "f4")]), r"dtype \[\('a', '<f4'\)\] is not one of"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(cpu: Device, value: Any, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        cpu.put(value)


@pytest.mark.parametrize("value", [3, [1.5, 2.5], ((1, 2), (3, 4))])
def test_what_numpy_takes_is_put(cpu: Device, value: Any) -> None:
    np.testing.assert_array_equal(cpu.put(value).get(timeout_s=30), np.asarray(value))
