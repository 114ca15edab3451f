"""Pickle new containers, with numbers in place of the existing objects in them."""

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from accel_lab.compute.cells.mutable_parts import ATOMS
from accel_lab.compute.cells.plain_data import ITEMS

_NEW: frozenset[type] = frozenset((list, dict, tuple, set, frozenset))
_PLAIN: frozenset[type] = _NEW | ATOMS | {bytes, bytearray}


def dumps(value: Any, number: Callable[[Any], int | None]) -> bytes | None:
    """Pickle a container of plain data, and of what `number` has a number of; None of all else."""
    if type(value) not in _NEW:
        return None
    inside = value.values() if type(value) is dict else value
    if all(type(one) in ATOMS for one in inside):
        return None
    file = io.BytesIO()
    try:
        _Weaver(file, number).dump(value)
    except (pickle.PicklingError, RuntimeError):  # nested too deeply, or a thread changes it
        return None
    return file.getvalue()


def loads(data: bytes, objects: Sequence[Any]) -> Any:
    """Return what `dumps` was given, with these in place of their numbers."""
    return _Unweaver(data, objects).load()


class _Weaver(pickle.Pickler):
    def __init__(self, file: io.BytesIO, number: Callable[[Any], int | None]) -> None:
        super().__init__(file)
        self._number = number
        self._left = ITEMS

    def persistent_id(self, obj: Any) -> int | None:
        if (number := self._number(obj)) is not None:
            return number
        self._left -= 1
        if type(obj) not in _PLAIN or self._left < 0:
            raise pickle.PicklingError
        return None


class _Unweaver(pickle.Unpickler):
    def __init__(self, data: bytes, objects: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._objects = objects

    def persistent_load(self, pid: Any) -> Any:
        return self._objects[pid]
