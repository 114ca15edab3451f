"""What a cell has of the notebook's that is not plain data, and which parts of it it changes."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.parts import ATOMS, Way, children, items, parts_of
from accel_lab.compute.plain import frozen, thawed
from accel_lab.compute.renewal import CONTAINERS, copied, is_array, made, renew
from accel_lab.compute.tensors import State, has_state

_NOTHING = object()


class Change(NamedTuple):
    """What has become of one part: its new values, and what it has no more.

    The values are ATOMS, and copies of all else.
    """

    way: Way
    values: dict[Any, Any]
    gone: list[Any]


def arrays_in(value: Any) -> frozenset[Way]:
    """Return the ways to arrays and tensors: on the host a context's own look so, too."""
    found, _ = parts_of(value, lambda _way, _key, child: frozen(child))
    return frozenset(
        (*part.way, key) for part in found for key in part.copies if is_array(part.before[key])
    )


class Lent:
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

    def changes(self) -> tuple[list[Change], list[Way]]:
        """Return what has changed that can go back, and the ways to what else has."""
        found: list[Change] = []
        other: list[Way] = []
        for way, holder, before, copies in self._parts:
            now = children(holder)
            if now is None:
                other.append(way)
                continue
            values: dict[Any, Any] = {}
            for key, child in now.items():
                old = before.get(key, _NOTHING)
                if child is old and (type(child) in ATOMS or copies[key] is None):
                    continue  # what is inside is a part of its own
                value = child if type(child) in ATOMS else self._now(way, key, child, old)
                if value is None and child is not None:
                    other.append((*way, key))
                elif type(value) in ATOMS or value != copies.get(key):
                    values[key] = value
            gone = [key for key in before if key not in now]
            if values or gone:
                found.append(Change(way, values, gone))
        return found, other

    def _now(self, way: Way, key: Any, child: Any, old: Any) -> bytes | None:
        if child is not old and has_state(child):
            return None  # its state is not all that there is to another one
        if type(child) is np.ndarray and not self._on_device(child):
            return copied(child)
        return self._copy(way, key, child)

    def _copy(self, way: Way, key: Any, child: Any) -> bytes | None:
        if type(child) in CONTAINERS:
            return frozen(child)
        if is_array(child) and (not self._arrays or (*way, key) not in self._arrays):
            return None
        return copied(child)


def change(mine: Any, changes: list[Change]) -> None:
    """Change what was lent as the copy was changed; what is not there any more is left out."""
    for way, values, gone in changes:
        with suppress(LookupError, TypeError):  # the notebook has changed it meanwhile
            holder = items(mine)
            for key in way:
                holder = items(holder[key])
            for key in reversed(gone):
                del holder[key]
            for key, value in values.items():
                new = thawed(value) if type(value) is bytes else value
                if type(holder) is list and key >= len(holder):
                    holder.append(made(new))
                elif not renew(_item(holder, key), new) and type(new) is not State:
                    holder[key] = made(new)


def _item(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except KeyError:
        return None
