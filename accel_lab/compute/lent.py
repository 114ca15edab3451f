"""What a cell has of the notebook's that is not plain data, and which parts of it it changes.

Such are instances of the notebook's own classes, and lists and dictionaries that hold more than
plain data. They are only looked at: nothing of the user's runs here.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from accel_lab.compute.plain import frozen, frozen_array

PARTS = 10_000
"""How many attributes and items are looked at."""
_KEYS: frozenset[type] = frozenset((str, int, float, bool, bytes, type(None)))
_HOLDERS: frozenset[type] = frozenset((list, tuple, dict))
_NOTHING = object()

Way: TypeAlias = tuple[Any, ...]
"""The attributes, keys and indices that lead to a part."""


class Change(NamedTuple):
    """What has become of one part: its new plain values, and what it has no more."""

    way: Way
    values: dict[Any, Any]
    gone: list[Any]


class _Part(NamedTuple):
    way: Way
    holder: Any
    before: dict[Any, Any]
    copies: dict[Any, bytes | None]


def is_own(value: Any) -> bool:
    """Whether this is an instance of a class of the notebook's, with attributes."""
    kind = type(value)
    if kind.__module__ != "__main__" or issubclass(kind, type) or kind is FunctionType:
        return False
    return kind.__dictoffset__ != 0


def arrays_in(value: Any) -> frozenset[Way]:
    """Return the ways to NumPy's arrays in a value: on the host a context's own look so, too."""
    return frozenset(
        (*part.way, key)
        for part in _parts(value, lambda _way, _key, _child: None)
        for key, child in part.before.items()
        if type(child) is np.ndarray
    )


class Lent:
    """A value, as it was lent.

    Parameters:
        arrays: the ways to those arrays in it that are the notebook's own.
        on_device: whether something is an array of the device.
    """

    def __init__(
        self, value: Any, arrays: frozenset[Way], on_device: Callable[[Any], bool]
    ) -> None:
        self._arrays = arrays
        self._on_device = on_device
        self._parts = list(_parts(value, self._copy))

    def changes(self) -> tuple[list[Change], list[Way]]:
        """Return what is plain data and has changed, and the ways to what else has."""
        found: list[Change] = []
        other: list[Way] = []
        for way, holder, before, copies in self._parts:
            now = _children(holder)
            if now is None:
                other.append(way)
                continue
            values: dict[Any, Any] = {}
            for key, child in now.items():
                if child is before.get(key, _NOTHING) and copies[key] is None:
                    continue  # what is inside is a part of its own
                copy = self._copy(way, key, child)
                if copy is None and type(child) is np.ndarray and not self._on_device(child):
                    copy = frozen_array(child)
                if copy is None:
                    other.append((*way, key))
                elif copy != copies.get(key):
                    values[key] = child
            gone = [key for key in before if key not in now]
            if values or gone:
                found.append(Change(way, values, gone))
        return found, other

    def _copy(self, way: Way, key: Any, child: Any) -> bytes | None:
        if type(child) is not np.ndarray:
            return frozen(child)
        return frozen_array(child) if self._arrays and (*way, key) in self._arrays else None


def change(mine: Any, changes: list[Change]) -> None:
    """Change what was lent as the copy was changed; what is not there any more is left out."""
    for way, values, gone in changes:
        with suppress(LookupError, TypeError):  # the notebook has changed it meanwhile
            holder = _items(mine)
            for key in way:
                holder = _items(holder[key])
            for key in reversed(gone):
                del holder[key]
            for key, value in values.items():
                if type(holder) is list and key >= len(holder):
                    holder.append(value)
                elif not renew(_item(holder, key), value):
                    holder[key] = value


def renew(mine: Any, value: Any) -> bool:
    """Make a list, dictionary, set or array equal to another in place; whether that could be.

    An array keeps its shape.
    """
    if type(mine) is not type(value):
        return False
    if isinstance(mine, np.ndarray):
        if not mine.flags.writeable or mine.size != value.size or mine.dtype != value.dtype:
            return False
        mine[...] = value.reshape(mine.shape)
    elif isinstance(mine, list):
        mine[:] = value
    elif isinstance(mine, dict | set):
        mine.clear()
        mine.update(value)
    else:
        return False
    return True


def written(name: str, value: Any, way: Way) -> str:
    """Write a part of what a name stands for as one finds it."""
    for key in way:
        name += f".{key}" if is_own(value) else f"[{key!r}]"
        value = _items(value)[key]
    return name


def _parts(value: Any, copied: Callable[[Way, Any, Any], bytes | None]) -> Iterator[_Part]:
    """Yield what has parts in a value, each once, with its own."""
    ahead: list[tuple[Way, Any]] = [((), value)]
    seen: set[int] = set()
    left = PARTS
    while ahead:
        way, holder = ahead.pop()
        children = None if id(holder) in seen else _children(holder)
        if children is None:
            continue
        seen.add(id(holder))
        left -= len(children)
        if left < 0:
            return
        copies = {key: copied(way, key, child) for key, child in children.items()}
        ahead += [
            ((*way, key), child)
            for key, child in children.items()
            if copies[key] is None and _may_have_parts(child)
        ]
        yield _Part(way, holder, children, copies)


def _children(holder: Any) -> dict[Any, Any] | None:
    kind = type(holder)
    if kind is list or kind is tuple:
        return dict(enumerate(holder))
    if kind is dict or is_own(holder):
        items: dict[Any, Any] = dict(_items(holder))
        return items if all(type(key) in _KEYS for key in items) else None
    return None


def _may_have_parts(value: Any) -> bool:
    return type(value) in _HOLDERS or is_own(value)


def _items(holder: Any) -> Any:
    """Return what is indexed to get to a part."""
    return object.__getattribute__(holder, "__dict__") if is_own(holder) else holder


def _item(holder: Any, key: Any) -> Any:
    return holder.get(key) if isinstance(holder, dict) else holder[key]
