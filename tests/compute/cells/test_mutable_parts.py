"""What has parts that a cell may change, and where they end."""

from dataclasses import dataclass
from typing import Any

import pytest

from accel_lab.compute.cells import mutable_parts
from accel_lab.compute.cells.captured_objects import CapturedObjects, change
from accel_lab.compute.cells.mutable_parts import children, is_own, items, parts_of


class Base:
    __slots__ = ("__hidden", "a", "b")

    def __init__(self) -> None:
        self.a: Any = 1
        self.__hidden = [2]


class Derived(Base):
    __slots__ = ("c",)


class Mixed(Derived):
    """With attributes beside the slots that it inherits."""


class Refusing(Base):
    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AssertionError(name)


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    log: list[int]


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the classes of this file be of the notebook."""
    for kind in (Base, Derived, Mixed, Refusing, Point):
        monkeypatch.setattr(kind, "__module__", "__main__")


def test_slots_are_parts_also_inherited_ones_and_beside_attributes() -> None:
    mixed = Mixed()
    mixed.c, mixed.d = 3, 4  # type: ignore[attr-defined]
    assert children(mixed) == {"a": 1, "_Base__hidden": [2], "c": 3, "d": 4}
    assert children(Base()) == {"a": 1, "_Base__hidden": [2]}
    assert children(Point(1.0, [])) == {"x": 1.0, "log": []}
    assert is_own(Point(1.0, []))
    assert not is_own(Base)


def test_slots_and_attributes_are_set_and_deleted_without_the_classes_own_way() -> None:
    mixed = Mixed()
    mixed.d = 4  # type: ignore[attr-defined]
    known = items(mixed)
    known["b"], known["e"] = 2, 5
    del known["a"], known["d"], known["c"]
    assert children(mixed) == {"b": 2, "_Base__hidden": [2], "e": 5}
    with pytest.raises(KeyError):
        known["a"]
    refusing = Refusing.__new__(Refusing)
    items(refusing)["a"] = 7
    assert refusing.a == 7


def made() -> list[Any]:
    return [Derived(), Point(1.0, [1]), object()]


def test_what_changes_in_slots_is_changed_elsewhere() -> None:
    theirs, mine = made(), made()
    captured = CapturedObjects(theirs, frozenset(), lambda _: False)
    log = mine[1].log
    theirs[0].a, theirs[0].c = "one", 3
    theirs[0]._Base__hidden.append(5)
    theirs[1].log.append(2)
    found, other = captured.changes()
    change(mine, found)
    assert other == []
    assert children(mine[0]) == {"a": "one", "c": 3, "_Base__hidden": [2, 5]}
    assert mine[1].log is log
    assert log == [1, 2]
    del theirs[0].a
    change(mine, captured.changes()[0])
    assert not hasattr(mine[0], "a")


def test_what_has_too_many_parts_is_told_and_the_others_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mutable_parts, "PARTS", 10)
    value: dict[str, Any] = {"log": [object(), *range(10)], "n": 1, "inner": [object(), 2]}
    captured = CapturedObjects(value, frozenset(), lambda _: False)
    assert captured.beyond == [("log",)]
    value["log"].append(3)
    value["n"] = 2
    value["inner"][1] = 3
    assert [(way, values) for way, values, *_ in captured.changes()[0]] == [
        ((), {"n": 2}),
        (("inner",), {1: 3}),
    ]
    found, beyond = parts_of(list(range(11)), lambda _way, _key, _child: None)
    assert (found, beyond) == ([], [()])
