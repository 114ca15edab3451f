"""Cached and dispatching functions of the user's, in the context and back."""

import fnmatch
from collections.abc import Iterator
from functools import lru_cache, partial, singledispatch
from math import factorial
from typing import Any

import pytest

from accel_lab import Device, System
from accel_lab.compute.user_code.functools_pickle import inside, reduced

CELL = """
from functools import cache, cached_property, lru_cache, singledispatch

class Data:
    looked = 0

    @cached_property
    def size(self):
        'How much there is.'
        self.looked += 1
        return 7 * self.looked

@lru_cache(maxsize=7)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@singledispatch
def told(value):
    return "something"

@told.register
def _(value: int):
    return told("text") + " whole"

@told.register(list)
def _(value):
    return [told(one) for one in value]
"""


@pytest.fixture(scope="module")
def cpu() -> Iterator[Device]:
    with System("host") as lab:
        yield lab.devices[0]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Functions of a module that no other process has."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL, names)  # noqa: S102 - as a notebook does
    return names


def test_a_cached_function_that_calls_itself_runs(cpu: Device, names: dict[str, Any]) -> None:
    assert cpu.run(names["fibonacci"], 40).result(30) == 102334155
    assert cpu.run(lambda f: f.cache_parameters(), names["fibonacci"]).result(30) == {
        "maxsize": 7,
        "typed": False,
    }


def test_a_cached_partial_has_no_name_and_runs(cpu: Device, names: dict[str, Any]) -> None:
    exec("def added(a, b):\n    return a + b", names)  # noqa: S102 - as a notebook does
    assert cpu.run(lru_cache(partial(names["added"], 1)), 2).result(30) == 3


def test_a_cached_property_is_worked_out_once(cpu: Device, names: dict[str, Any]) -> None:
    def sizes(data: Any) -> Any:
        return data.size, data.size, data.looked, type(data).size.__doc__

    assert cpu.run(sizes, names["Data"]()).result(30) == (7, 7, 1, "How much there is.")
    back = cpu.run(lambda data: (data.size, data)[1], names["Data"]()).result(30)
    assert (type(back), back.size, back.looked) == (names["Data"], 7, 1)


def test_a_dispatching_function_keeps_its_cases(cpu: Device, names: dict[str, Any]) -> None:
    assert cpu.run(names["told"], [1, "a"]).result(30) == ["something whole", "something"]


def test_a_cached_function_comes_back(cpu: Device, names: dict[str, Any]) -> None:
    back = cpu.run(lambda f: (f(10), f)[1], names["fibonacci"]).result(30)
    assert type(back) is type(lru_cache(factorial))
    assert (back.cache_info().currsize, back(10)) == (0, 55)


def test_what_can_be_imported_goes_by_name() -> None:
    compiled = vars(fnmatch)["_compile_pattern"]
    assert inside(compiled)
    assert reduced(compiled) is None
    assert reduced(factorial) is None


def test_what_is_inside_is_found(names: dict[str, Any]) -> None:
    assert [one.__name__ for one in inside(names["fibonacci"])] == ["fibonacci"]
    assert {one.__name__ for one in inside(names["told"])} == {"told", "_"}
    assert inside(singledispatch) == ()
