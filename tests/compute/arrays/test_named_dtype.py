"""The dtype of a handle is a text, and equal to what NumPy's dtype object is equal to."""

import copy
import json
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from accel_lab.compute.arrays.dtypes import NAMES, canonical, numpy_dtype
from accel_lab.compute.arrays.named_dtype import named

OTHERS: list[Any] = [
    *NAMES,
    *(numpy_dtype(name) for name in NAMES),
    *(numpy_dtype(name).type for name in NAMES),
    *(bool, int, float, complex, object, str),
    *("f4", "<f4", ">f4", "=f8", "double", "single", "c8", "?", "kernel", "nonsense", "f4,(", ""),
    *(np.dtype(">f4"), np.dtype([("a", "f4")]), 3, 1.5, b"f4", ("f4",), object(), [], {}),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_is_equal_to_what_numpys_is_equal_to(name: str) -> None:
    mine, numpys = named(name), numpy_dtype(name)
    for other in OTHERS:
        assert (mine == other) is (numpys == other), other
        assert (mine != other) is (numpys != other), other
        assert (other == mine) is (other == numpys), other
    assert mine != None  # noqa: E711 - NumPy takes None for float64
    assert mine in (ml_dtypes.float8_e5m2, numpys.type)
    assert mine not in (np.int64 if name != "int64" else np.int32, object)


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_has_what_numpys_object_has_and_is_a_text_for_all_else(name: str) -> None:
    mine, numpys = named(name), numpy_dtype(name)
    for attribute in ("kind", "itemsize", "type", "name", "char", "str", "byteorder", "isnative"):
        assert getattr(mine, attribute) == getattr(numpys, attribute)
    assert np.dtype(mine) == numpys
    assert np.zeros(1, mine).dtype == numpys
    assert (str(mine), f"{mine:>16}", json.dumps([mine])) == (name, f"{name:>16}", f'["{name}"]')
    keyed: dict[str, int] = {mine: 1}
    assert {name: 1}[mine] == keyed[name] == 1
    assert mine in {name, "text"}
    assert hash(mine) == hash(name)
    for made in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):  # noqa: S301 - its own
        assert made is mine
    assert type(canonical(mine)) is str
    with pytest.raises(AttributeError, match="shapes"):
        _ = mine.shapes
