"""Objects with parts that a cell may change: containers, instances of the notebook's classes.

They are only looked at: nothing of the user's runs here.
"""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from types import FunctionType, MemberDescriptorType
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from accel_lab.compute.arrays.torch_interop import is_module
from accel_lab.compute.cells.plain_data import MAPPINGS

PARTS = 200_000
"""How many attributes and items are looked at."""
ATOMS: frozenset[type] = frozenset((str, int, float, bool, complex, type(None)))
"""What cannot change, and is its own copy."""
_DATES: frozenset[type] = frozenset((date, datetime, time, timedelta))
_KEYS: frozenset[type] = ATOMS | _DATES | {bytes}
_HOLDERS: frozenset[type] = MAPPINGS | {list, tuple, deque}
_BASES = (dict, list, deque, tuple)
"""What of these a class of the notebook's may derive from."""
_slots: "WeakKeyDictionary[type, dict[str, MemberDescriptorType]]" = WeakKeyDictionary()

Way: TypeAlias = tuple[Any, ...]
"""The attributes, keys and indices that lead to a part.

A key or index of what has attributes, too, is a tuple of one: ("a",) beside "a".
"""


class Part(NamedTuple):
    """Something with parts, as it was.

    `copies` has those of its parts that are no ATOMS: a copy, or None where there is none.
    """

    way: Way
    holder: Any
    before: dict[Any, Any]
    copies: dict[Any, bytes | None]


def parts_of(
    value: Any, copied: Callable[[Way, Any, Any], bytes | None]
) -> tuple[list[Part], list[Way]]:
    """Return what has parts in a value, each once, and the ways to what would be beyond PARTS.

    Parameters:
        copied: returns a copy of a part, given its holder's way, its key, and itself; what it has
            none of is looked into.
    """
    found: list[Part] = []
    beyond: list[Way] = []
    ahead: list[tuple[Way, Any]] = [((), value)]
    seen: set[int] = set()
    left = PARTS
    while ahead:
        way, holder = ahead.pop()
        before = None if id(holder) in seen else children(holder)
        if before is None:
            continue
        seen.add(id(holder))
        if len(before) > left:
            beyond.append(way)
            continue
        left -= len(before)
        copies = {
            key: copied(way, key, child)
            for key, child in before.items()
            if type(child) not in ATOMS
        }
        ahead += [
            ((*way, key), before[key])
            for key, copy in copies.items()
            if copy is None and _has_parts(before[key])
        ]
        found.append(Part(way, holder, before, copies))
    return found, beyond


def is_own(value: Any) -> bool:
    """Whether this is an instance of a class of the notebook's, with attributes, slots or items."""
    kind = type(value)
    if kind.__module__ != "__main__" or issubclass(kind, type) or kind is FunctionType:
        return False
    return kind.__dictoffset__ != 0 or issubclass(kind, _BASES) or bool(_slots_of(kind))


def has_cells(value: Any) -> bool:
    """Whether this is a function of the notebook's that has variables of a function around it."""
    return (
        type(value) is FunctionType and value.__module__ == "__main__" and bool(value.__closure__)
    )


def children(holder: Any) -> dict[Any, Any] | None:
    """Return the parts of something by their keys; None if it has none that can be named."""
    kind = type(holder)
    if kind is list or kind is tuple:
        return dict(enumerate(holder))
    found: dict[Any, Any]
    if kind is dict:
        found = holder.copy()
    elif _has_attributes(holder):
        found = attributes(holder)
        if issubclass(kind, _BASES):
            inside = _contents_of(holder)
            if _are_keys(inside):
                return found | {(key,): child for key, child in inside.items()}
    elif kind in _HOLDERS:
        found = _contents_of(holder)
    elif has_cells(holder):
        found = _Variables(holder).contents()
    else:
        return None
    return found if _are_keys(found) else None


def _are_keys(keys: Iterable[Any]) -> bool:
    """Whether these are found by equal ones of another process, as an instance may not be."""
    return all(
        isinstance(key, np.generic) or (type(key) in (tuple, frozenset) and _are_keys(key))
        for key in keys
        if type(key) not in _KEYS
    )


def attributes(instance: Any) -> dict[Any, Any]:
    """Return what an instance has, in its slots too."""
    found = _dict_of(instance).copy()
    for name, slot in _slots_of(type(instance)).items():
        with suppress(AttributeError):  # nothing is in it
            found[name] = slot.__get__(instance)
    return found


def items(holder: Any) -> Any:
    """Return what is indexed to get to a part, to set and to delete it."""
    kind = type(holder)
    if kind is FunctionType:
        return _Variables(holder)
    if not _has_attributes(holder):
        plain = kind is dict or kind is tuple or kind not in _HOLDERS
        return holder if plain else _Contents(holder)
    slots = _slots_of(kind)
    if slots or issubclass(kind, _BASES):
        return _Attributes(holder, slots)
    return _dict_of(holder)


def written(name: str, value: Any, way: Way) -> str:
    """Write a part of what a name stands for as one finds it."""
    for key in way:
        if has_cells(value):
            name, value = f"{key} of {name}", items(value)[key]
            continue
        attribute = _has_attributes(value) and type(key) is str
        wrapped = _has_attributes(value) and type(key) is tuple
        name += f".{key}" if attribute else f"[{key[0] if wrapped else key!r}]"
        value = items(value)[key]
    return name


class _Contents:
    """The items of a container, without its class's own ways, and without those that are missing.

    A list grows by an item behind its last one.
    """

    def __init__(self, holder: Any) -> None:
        self._holder = holder
        self._base = _base_of(type(holder))

    def __getitem__(self, key: Any) -> Any:
        if self._base in MAPPINGS and not dict.__contains__(self._holder, key):
            raise KeyError(key)
        return self._base.__getitem__(self._holder, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._base not in MAPPINGS and key >= self._base.__len__(self._holder):
            self._base.append(self._holder, value)
        else:
            self._base.__setitem__(self._holder, key, value)

    def __delitem__(self, key: Any) -> None:
        self._base.__delitem__(self._holder, key)


class _Variables:
    """What a function has of the variables of functions around it, without those that are unset."""

    def __init__(self, function: FunctionType) -> None:
        cells = function.__closure__ or ()
        self._cells = dict(zip(function.__code__.co_freevars, cells, strict=True))

    def contents(self) -> dict[Any, Any]:
        """Return their values by their names."""
        found = {}
        for name, cell in self._cells.items():
            with suppress(ValueError):  # nothing is in it
                found[name] = cell.cell_contents
        return found

    def __getitem__(self, name: Any) -> Any:
        try:
            return self._cells[name].cell_contents
        except ValueError:
            raise KeyError(name) from None

    def __setitem__(self, name: Any, value: Any) -> None:
        self._cells[name].cell_contents = value

    def __delitem__(self, name: Any) -> None:
        del self._cells[name].cell_contents


class _Attributes:
    """The attributes of an instance that has slots or items, without its class's own ways."""

    def __init__(self, instance: Any, slots: dict[str, MemberDescriptorType]) -> None:
        self._instance = instance
        self._slots = slots
        self._others = _dict_of(instance)
        self._contents: Any = None
        if issubclass(type(instance), _BASES):
            self._contents = _Contents(instance)

    def __getitem__(self, name: Any) -> Any:
        if type(name) is tuple:
            return self._contents[name[0]]
        if name not in self._slots:
            return self._others[name]
        try:
            return self._slots[name].__get__(self._instance)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: Any, value: Any) -> None:
        if type(name) is tuple:
            self._contents[name[0]] = value
        elif name in self._slots:
            self._slots[name].__set__(self._instance, value)
        else:
            self._others[name] = value

    def __delitem__(self, name: Any) -> None:
        if type(name) is tuple:
            del self._contents[name[0]]
            return
        if name not in self._slots:
            del self._others[name]
            return
        with suppress(AttributeError):
            self._slots[name].__delete__(self._instance)


def _base_of(kind: type) -> Any:
    return next(base for base in kind.__mro__ if base in _HOLDERS)


def _contents_of(holder: Any) -> dict[Any, Any]:
    base = _base_of(type(holder))
    return dict(base.items(holder) if base in MAPPINGS else enumerate(base.__iter__(holder)))


def _dict_of(holder: Any) -> dict[Any, Any]:
    if type(holder).__dictoffset__ == 0:
        return {}
    known: dict[Any, Any] = object.__getattribute__(holder, "__dict__")
    return known


def _slots_of(kind: type) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class and of those that it inherits from, by name."""
    found = _slots.get(kind)
    if found is None:
        found = {}
        for base in reversed(kind.__mro__):
            known = vars(base)
            if "__slots__" in known:  # a class that is written in C has members without it
                found |= {
                    name: one for name, one in known.items() if type(one) is MemberDescriptorType
                }
        _slots[kind] = found
    return found


def _has_parts(value: Any) -> bool:
    return type(value) in _HOLDERS or _has_attributes(value) or has_cells(value)


def _has_attributes(value: Any) -> bool:
    return is_own(value) or is_module(value)
