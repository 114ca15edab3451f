"""The notebook's objects that a cell uses, beside plain data, and which parts it changes."""

import pickle
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from accel_lab.compute.arrays.torch_interop import State, has_state
from accel_lab.compute.cells.container_pickle import dumps, loads
from accel_lab.compute.cells.mutable_parts import ATOMS, Part, Way, children, items, parts_of
from accel_lab.compute.cells.plain_data import CONTAINERS, PLAIN_FACTORIES, frozen, thawed
from accel_lab.compute.cells.write_back import copied, holds_changing, is_array, made, renew

_NOTHING = object()

Place: TypeAlias = tuple[Way, Any, bytes | None]
"""The way to a holder, the key of a part in it, and the part's copy if it has one."""


class Moved(NamedTuple):
    """What was elsewhere in what was lent, and a copy where it has changed since."""

    place: Way
    copy: bytes | None


class Woven(NamedTuple):
    """Something new: a pickle in which numbers stand for what was elsewhere in what was lent."""

    data: bytes
    moved: list[Moved]


class Change(NamedTuple):
    """What has become of one part: its new values, and what it has no more.

    The values are ATOMS, and copies of all else, or Moved, or Woven. `order` is that of a mapping's
    keys where the values alone do not tell it, and `factory` the new one of a defaultdict.
    """

    way: Way
    values: dict[Any, Any]
    gone: list[Any]
    order: list[Any]
    factory: tuple[Any, ...] = ()


def arrays_in(value: Any) -> frozenset[Way]:
    """Return the ways to arrays and tensors: on the host a context's own look so, too."""
    found, _ = parts_of(value, lambda _way, _key, child: frozen(child))
    return frozenset(
        (*part.way, key) for part in found for key in part.copies if is_array(part.before[key])
    )


class CapturedObjects:
    """A value, as it was lent.

    Parameters:
        arrays: the ways to those arrays and tensors in it that are the notebook's own.
        on_device: whether something is an array of the device.

    Attributes:
        beyond: the ways to what has so many parts that they are not looked at.
    """

    def __init__(
        self, value: Any, arrays: frozenset[Way], on_device: Callable[[Any], bool]
    ) -> None:
        self._arrays = arrays
        self._on_device = on_device
        self._parts, self.beyond = parts_of(value, self._copy)
        self._factories = {id(part.holder): _factory(part.holder) for part in self._parts}
        self._places: dict[int, Place] = {
            id(part.before[key]): (part.way, key, copy)
            for part in reversed(self._parts)  # the first place counts
            for key, copy in part.copies.items()
        }

    def changes(self) -> tuple[list[Change], list[Way]]:
        """Return what has changed that can go back, and the ways to what else has."""
        found: list[Change] = []
        other: list[Way] = []
        parts = [*self._parts]
        for part in parts:  # which grows
            now = children(part.holder)
            if now is None:
                other.append(part.way)
                continue
            values = self._values(part, now, other, parts)
            gone = [key for key in part.before if key not in now]
            order = _order(part.before, now) if isinstance(part.holder, dict) else []
            factory = _factory(part.holder)
            changed = () if factory is self._factories[id(part.holder)] else (factory,)
            if changed and not any(factory is one for one in PLAIN_FACTORIES):
                other.append(part.way)
                changed = ()
            if values or gone or order or changed:
                found.append(Change(part.way, values, gone, order, changed))
        return found, other

    def _values(
        self, part: Part, now: dict[Any, Any], other: list[Way], parts: list[Part]
    ) -> dict[Any, Any]:
        """Return what is new of one part, and add the ways to what cannot go back.

        What was copied as a whole, but holds by now what may have other names, is a part to add.
        """
        way, _, before, copies = part
        values: dict[Any, Any] = {}
        for key, child in now.items():
            old = before.get(key, _NOTHING)
            if child is old and (type(child) in ATOMS or copies[key] is None):
                continue  # what is inside is a part of its own
            if type(child) in ATOMS:
                values[key] = child
                continue
            place = (way, key, copies[key]) if child is old else self._places.get(id(child))
            if place is None:
                value = self._dumps(child, parts) or self._now(way, key, child, old)
                if value is None:
                    other.append((*way, key))
                elif value != copies.get(key):
                    values[key] = value
                continue
            moved = self._moved(place, child, parts)
            if moved is None:
                other.append((*way, key))
            elif child is not old or moved.copy is not None:
                values[key] = moved
        return values

    def _moved(self, place: Place, child: Any, parts: list[Part]) -> Moved | None:
        """Return where something was, and what it is now; None if that cannot go back."""
        way, key, copy = place
        if copy is not None and holds_changing(child):
            parts.append(self._part(way, key, copy, child))
            copy = None
        now = None if copy is None else self._now(way, key, child, child)
        if now is None and copy is not None:
            return None
        return Moved((*way, key), None if now == copy else now)

    def _dumps(self, child: Any, parts: list[Part]) -> Woven | None:
        """Return a new container in which there is something that was lent; None of all else."""
        found: list[Moved] = []

        def number(one: Any) -> int | None:
            place = self._places.get(id(one))
            if place is None:
                return None
            moved = self._moved(place, one, parts)
            if moved is None:
                raise pickle.PicklingError
            found.append(moved)
            return len(found) - 1

        data = dumps(child, number)
        return Woven(data, found) if data is not None and found else None

    def _part(self, way: Way, key: Any, copy: bytes, holder: Any) -> Part:
        before = thawed(copy)
        self._factories[id(holder)] = _factory(before)
        inside = children(before) or {}
        copies = {at: frozen(one) for at, one in inside.items() if type(one) not in ATOMS}
        return Part((*way, key), holder, inside, copies)

    def _now(self, way: Way, key: Any, child: Any, old: Any) -> bytes | None:
        if child is not old and has_state(child):
            return None  # its state is not all that there is to another one
        if type(child) is np.ndarray and not self._on_device(child):
            return copied(child)
        if type(child) in CONTAINERS:
            return frozen(child)
        return self._copy(way, key, child)

    def _copy(self, way: Way, key: Any, child: Any) -> bytes | None:
        if type(child) in CONTAINERS:
            return None if holds_changing(child) else frozen(child)
        if is_array(child) and (not self._arrays or (*way, key) not in self._arrays):
            return None
        return copied(child)


def change(mine: Any, changes: list[Change]) -> None:
    """Change what was lent as the copy was changed; what is not there any more is left out."""
    moved = _moved(mine, changes)
    for way, values, gone, order, factory in reversed(changes):  # the ways are as they were
        with suppress(AttributeError, LookupError, TypeError):  # the notebook has changed it since
            changing = _at(mine, way)
            holder = items(changing)
            _set(holder, values, gone, moved)
            for one in factory:
                changing.default_factory = one
            for key in order:
                part = holder[key]
                del holder[key]
                holder[key] = part


def _moved(mine: Any, changes: list[Change]) -> dict[Way, Any]:
    """Return what has moved, by the ways to where it was; what is not there is left out."""
    found: dict[Way, Any] = {}
    for change in changes:
        for value in change.values.values():
            for one in value.moved if type(value) is Woven else (value,):
                if type(one) is Moved:
                    with suppress(LookupError, TypeError):
                        found[one.place] = _at(mine, one.place)
    return found


def _at(mine: Any, way: Way) -> Any:
    for key in way:
        mine = items(mine)[key]
    return mine


def _factory(holder: Any) -> Any:
    return holder.default_factory if type(holder) is defaultdict else None


def _set(holder: Any, values: dict[Any, Any], gone: list[Any], moved: dict[Way, Any]) -> None:
    staying = set(map(id, moved.values()))
    for key in reversed(gone):
        del holder[key]
    for key, value in values.items():
        if type(value) in ATOMS:
            holder[key] = value
            continue
        if type(value) is Woven:
            holder[key] = loads(value.data, [_renewed(one, moved) for one in value.moved])
        elif type(value) is Moved:
            new = _renewed(value, moved)
            if new is not _item(holder, key):  # a tuple has it already
                holder[key] = new
        else:
            old, new = _item(holder, key), thawed(value)
            old = None if id(old) in staying else old
            if not renew(old, new) and type(new) is not State:
                holder[key] = made(new)


def _renewed(one: Moved, moved: dict[Way, Any]) -> Any:
    """Return what has moved, as it is now."""
    mine = moved[one.place]
    if one.copy is None:
        return mine
    new = thawed(one.copy)
    return mine if renew(mine, new) or type(new) is State else made(new)


def _order(before: dict[Any, Any], now: dict[Any, Any]) -> list[Any]:
    """Return the keys, if they are not those of before with new ones behind them."""
    if list(before) == list(now):
        return []
    kept = [key for key in before if key in now]
    return [] if kept == list(now)[: len(kept)] else list(now)


def _item(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except LookupError:
        return None
