"""Objects of a notebook's classes with slots, in the context and back."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel_lab import Device, System
from tests.notebook.cells import Notebook

CELL = """
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

class Named(Point):
    __slots__ = "name"

class Open(Point):
    __slots__ = ("__dict__", "__weakref__")

class Private:
    __slots__ = {"__value": "kept to itself", "_other": "told"}

    def __init__(self, value):
        self.__value, self._other = value, -value

    @property
    def x(self):
        return self.__value

class Listed:
    __slots__ = iter(["x", "__hidden"])

    def __init__(self, x):
        self.x = self.__hidden = x

    def told(self):
        return self.__hidden

class Changed:
    __slots__ = ("x", "_x", "unused")

Changed.x = property(lambda self: self._x, lambda self, x: setattr(self, "_x", x))

@dataclass(slots=True)
class Data:
    x: object
    y: int = 3

class Base(ABC, Generic[T]):
    __slots__ = ("x",)

    @abstractmethod
    def told(self): ...

class Derived(Base[int]):
    __slots__ = ()

    def __init__(self, x):
        self.x = x

    def told(self):
        return self.x

class Pair(NamedTuple):
    x: int
    y: int

def filled(one, **values):
    for name, value in values.items():
        setattr(one, name, value)
    return one

def again(one):
    return one

def is_closed(one):
    try:
        one.strange = 1
    except AttributeError:
        return True
    return False

made = {
    "Point": lambda: Point(1, [2]),
    "Named": lambda: filled(Named(1, 2), name="n"),
    "Open": lambda: filled(Open(1, 2), other=3),
    "Private": lambda: Private(1),
    "Changed": lambda: filled(Changed(), x=1),
    "Data": lambda: Data(1),
    "Derived": lambda: Derived(1),
    "Pair": lambda: Pair(1, 2),
}
"""
KINDS = ["Point", "Named", "Open", "Private", "Changed", "Data", "Derived", "Pair"]


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host") as lab:
        yield lab


@pytest.fixture(scope="module")
def gpu(lab: System) -> Device:
    return lab.devices[0]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL, names)  # noqa: S102 - of this file
    return names


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_with_slots_goes_there_and_comes_back(
    gpu: Device, names: dict[str, Any], kind: str
) -> None:
    make, one = names["made"][kind], names["made"][kind]()
    for found in (gpu.run(make).result(), gpu.run(names["again"], one).result()):
        assert type(found) is names[kind]
        assert found.x == 1
    assert gpu.run(names["is_closed"], one).result() == names["is_closed"](one)


def test_what_a_slot_has_is_what_it_had(gpu: Device, names: dict[str, Any]) -> None:
    again, made = names["again"], names["made"]
    assert gpu.run(again, made["Point"]()).result().y == [2]
    assert gpu.run(again, made["Named"]()).result().name == "n"
    assert gpu.run(again, made["Open"]()).result().other == 3
    assert gpu.run(again, made["Private"]()).result()._other == -1
    assert gpu.run(lambda one: type(type(one).x).__name__, made["Changed"]()).result() == "property"
    assert gpu.run(again, names["Point"].__new__(names["Point"])).result().__slots__ == ("x", "y")
    assert not hasattr(gpu.run(again, names["Point"].__new__(names["Point"])).result(), "x")
    assert gpu.run(lambda listed: (listed(1).x, listed(2).told()), names["Listed"]).result() == (
        1,
        2,
    )


def test_an_object_with_slots_comes_back_from_a_cell(lab: System, names: dict[str, Any]) -> None:
    notebook = Notebook(lab)
    notebook.names.update(names)
    notebook("p = Point(1, 2)\nq = Private(3)\nd = Data(xp.ones(2))", "--quiet")
    notebook("class Cell:\n    __slots__ = ('x', '__y')\nc = Cell()\nc.x = 5", "--quiet")
    assert type(notebook.names["p"].get()) is names["Point"]
    assert notebook.names["q"].get().x == 3
    assert lab.devices[0].get(notebook.names["d"].get().x).result().tolist() == [1.0, 1.0]
    assert notebook.names["c"].get().x == 5
    lab.suspend()
    lab.resume()
    assert notebook("p.y, q.x, c.x, is_closed(p)") == "(2, 3, 5, True)"
