"""The functions of `array` that are made from a table are functions like any other."""

import inspect
import sys
from typing import Any

import pytest

from accel_lab import array
from accel_lab.libraries.array.elementwise import BINARY, UNARY

SIGNATURES = {
    **dict.fromkeys(UNARY, ("x", "out")),
    **dict.fromkeys(BINARY, ("x", "y", "out")),
    "arctan2": ("y", "x", "out"),
}


@pytest.mark.parametrize("op", sorted(SIGNATURES))
def test_a_function_has_its_name_its_help_and_its_parameters(op: str) -> None:
    function: Any = getattr(array, op)
    assert inspect.isfunction(function)
    assert function.__name__ == function.__qualname__ == function.__code__.co_name == op
    parameters = inspect.signature(function).parameters
    assert tuple(parameters) == SIGNATURES[op]
    assert parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY
    assert (inspect.getdoc(function) or "").startswith("Return ")
    found = getattr(sys.modules[function.__module__], function.__qualname__)
    assert found is function  # so it is pickled by its name
